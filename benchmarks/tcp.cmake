netchannel_benchmark(tcp SOURCES bench_tcp.cpp USES proto_tcp)
