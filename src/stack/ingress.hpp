// The way in: one frame at a time, from its Ethernet header to a socket's queue, an answer or a counter.
//
//   take_descriptor -> (chain of parts) -> receive_frame -> ARP
//                                              |
//                                          receive_ip -> (reassembly) -> receive_transport -> UDP
//                                                                              |--------------> ICMP, ICMPv6
//                                                                              +--------------> unknown:
//                                                                              dropped
//
// What is dropped is counted under the first thing that is wrong with it, in the order of the headers.
// Bad-input rules of fragments, source routes and extension headers are wire's; here are those that need to
// know who we are.
#pragma once

#include "netchannel/frame.hpp"
#include "stack/world.hpp"

namespace netchannel::stack {

// A descriptor from the channel. It is untrusted: what does not name a slot of ours is counted and forgotten.
void take_descriptor(World& world, const FrameDesc& desc);
// `rx_slot`: the frame is a receive slot and not a large one.
void receive_frame(World& world, Frame frame, bool rx_slot);

// A UDP datagram without its headers, from the kernel's socket or from ourselves: copied and delivered.
bool deliver_copy(World& world, Bytes payload, const Endpoint& peer, const Endpoint& local, bool slow_path);

}  // namespace netchannel::stack
