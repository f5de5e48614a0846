netchannel_benchmark(stack SOURCES bench_stack.cpp USES stack)
netchannel_benchmark(stack_tcp SOURCES bench_stack_tcp.cpp USES stack)
