netchannel_benchmark(stack SOURCES bench_stack.cpp USES stack)
