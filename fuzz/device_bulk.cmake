netchannel_fuzzer(vnet_header SOURCES fuzz_vnet_header.cpp USES device)
