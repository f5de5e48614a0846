netchannel_fuzzer(stack SOURCES fuzz_stack.cpp USES stack)
netchannel_fuzzer(reassembly SOURCES fuzz_reassembly.cpp USES proto)
