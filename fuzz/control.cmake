netchannel_fuzzer(rtnetlink SOURCES fuzz_rtnetlink.cpp USES control)
