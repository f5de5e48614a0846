netchannel_fuzzer(rx_chain SOURCES fuzz_rx_chain.cpp USES device)
