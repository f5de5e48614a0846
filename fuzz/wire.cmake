foreach(parser arp checksum ethernet icmp icmpv6 ipv4 ipv6 packet tcp udp)
  netchannel_fuzzer(${parser} SOURCES fuzz_${parser}.cpp USES wire)
endforeach()
