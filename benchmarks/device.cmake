netchannel_benchmark(device SOURCES bench_device.cpp USES device)
