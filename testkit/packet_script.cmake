# Packet scripts: the parser, the runner, and the kernel as a target. Our stack as a target is tests/packets'.
add_library(netchannel_packet_script STATIC
  packet_script_parse.cpp packet_script_packets.cpp packet_script_segment.cpp packet_script_peer.cpp
  packet_script_calls.cpp packet_script_run.cpp packet_script_kernel.cpp)
target_link_libraries(netchannel_packet_script PRIVATE netchannel_flags PUBLIC netchannel_testkit)
