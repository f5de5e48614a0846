netchannel_benchmark(bulk SOURCES bench_bulk.cpp USES device lab)
