netchannel_benchmark(wire SOURCES bench_wire.cpp USES wire)
