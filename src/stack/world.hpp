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
#include "stack/stack.hpp"
#include "stack/udp_sockets.hpp"

namespace netchannel::stack {

struct World {
  World(ConsumerEnd end, FrameRegion& region, std::unique_ptr<FrameRegion> large_region,
        const StackOptions& wanted);

  CounterPage counters;
  StackOptions options;  // as given, but for `link`, which follows the device
  Instant now{};
  ConsumerEnd channel;
  std::unique_ptr<FrameRegion> large_region;
  FramePool rx, tx, large;
  LocalNet net;
  std::vector<proto::Route> given_routes;
  proto::RouteTable routes;
  proto::NeighbourCache neighbours;
  proto::PathMtuTable paths;
  proto::Reassembler reassembler;
  proto::TokenBucket error_budget;
  UdpSockets sockets;
  Egress egress;
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
