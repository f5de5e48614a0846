// Everything that a stack owns, in the order in which it may go: frames are held by sockets, waiting packets
// and reassembly, so the pools come before them.
#pragma once

#include <memory>

#include "channel/channel.hpp"
#include "netchannel/frame.hpp"
#include "netchannel/stats.hpp"
#include "proto/icmp.hpp"
#include "proto/neighbour.hpp"
#include "proto/path_mtu.hpp"
#include "proto/reassembly.hpp"
#include "proto/route.hpp"
#include "stack/egress.hpp"
#include "stack/local_net.hpp"
#include "stack/local_peers.hpp"
#include "stack/stack.hpp"
#include "stack/tcp_impl.hpp"
#include "stack/udp_sockets.hpp"

namespace netchannel::stack {

struct World {
  // Memory of the stack's own besides the device's slots.
  struct OwnMemory {
    std::unique_ptr<FrameRegion> large;  // for what does not fit a slot
    std::unique_ptr<FrameRegion> spill;  // for what waits in queues while slots are scarce
  };
  World(ConsumerEnd end, FrameRegion& region, OwnMemory own, const StackOptions& wanted);
  // A key of its own for each use, from the one secret.
  SipKey derive(std::uint64_t use) const;

  CounterPage counters;
  StackOptions options;  // as given, but for `link`, which follows the device
  Instant now{};
  ConsumerEnd channel;
  OwnMemory memory;
  FramePool rx, tx, large, spill;
  LocalNet net;
  std::vector<proto::Route> given_routes;
  proto::RouteTable routes;
  proto::NeighbourCache neighbours;
  LocalPeers local_peers;
  proto::PathMtuTable paths;
  proto::Reassembler reassembler;
  proto::TokenBucket error_budget;
  UdpSockets sockets;
  Egress egress;
  Tcp tcp;
  std::uint32_t delivered = 0;  // packets put into queues in this poll

  // A packet that comes in several descriptors is put together here, also across bursts.
  Frame chain;
  std::uint32_t chain_parts = 0;  // 0: none under way
  bool chain_lost = false;        // it will be dropped when its end has come

  LinkFacts& link() { return options.link; }
  void drop(DropReason reason) { counters.drop(reason); }
  void rebuild_routes();
};

}  // namespace netchannel::stack
