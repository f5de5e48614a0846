foreach(target tcp_state tcp_pair tcp_listen)
  netchannel_fuzzer(${target} SOURCES fuzz_${target}.cpp USES proto_tcp)
endforeach()
