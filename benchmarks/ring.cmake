netchannel_benchmark(ring SOURCES bench_ring.cpp USES ring buf)
