// The way out: finds the way to a destination (route, source, neighbour, path MTU), writes packets into
// transmit frames and stages them on the channel, which sees a whole burst at flush(). Nothing is held back
// longer than the call that made it.
//
//   send()  -> header cache hit -> frame: [headers | payload copied and summed] -> stage          the fast
//   path
//           -> miss -> find_way() -> cached, or waits for the neighbour, or a status
//   larger than a packet -> send_ip(): fragments; larger than a slot -> several frames a packet
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "channel/channel.hpp"
#include "netchannel/datagram.hpp"
#include "netchannel/frame.hpp"
#include "netchannel/stats.hpp"
#include "netchannel/wire/checksum.hpp"
#include "proto/fragment.hpp"
#include "proto/neighbour.hpp"
#include "proto/path_mtu.hpp"
#include "proto/route.hpp"
#include "stack/header_cache.hpp"
#include "stack/local_net.hpp"
#include "stack/local_peers.hpp"
#include "stack/tcp.hpp"
#include "stack/udp_sockets.hpp"
#include "stack/waiting_room.hpp"

namespace netchannel::stack {

// What egress works on, all owned by the stack.
struct EgressParts {
  ConsumerEnd& channel;
  FramePool& frames;
  LinkFacts& link;
  LocalNet& net;
  proto::RouteTable& routes;
  proto::NeighbourCache& neighbours;
  LocalPeers& local_peers;
  proto::PathMtuTable& paths;
  UdpSockets& sockets;
  CounterPage& counters;
  const StackLimits& limits;
};

// How to reach a destination.
struct Way {
  SendStatus status = SendStatus::queued;  // else: it cannot be reached, and nothing below holds
  IpAddress source{}, destination{};
  MacAddress mac{};                            // all zero while the neighbour is unknown
  std::uint32_t mtu = 0;                       // of the path
  std::optional<std::uint32_t> waits_under{};  // the neighbour's index
  Instant valid_until = kForever;
};

// One IP packet to be written, or several if it must be fragmented: `head` then `body` behind the IP header.
struct IpOut {
  Protocol protocol = Protocol::udp;
  std::uint8_t ttl = 64, tos = 0;
  bool dont_fragment = false;
  Bytes head{}, body{};
  UdpHandle socket{};      // who is told if the neighbour fails, ...
  TcpHandle connection{};  // ... or who; or none
  Endpoint peer{};
};

class Egress {
 public:
  Egress(const EgressParts& parts, const SipKey& key);

  // Sends one datagram of a socket. `sum`: of this payload, from the call before if it was the same; empty:
  // unknown. would_block: nothing was done, and no later datagram of the burst should be tried.
  SendStatus send_udp(const UdpSocketState& socket, const Endpoint& peer, Bytes payload,
                      std::optional<wire::PartialSum>& sum);

  // `source`: unspecified: choose it. On a local device the port decides too.
  Way find_way(Protocol protocol, const Endpoint& destination, const IpAddress& source);
  Way find_way(const IpAddress& destination, const IpAddress& source) {
    return find_way(Protocol::icmp, {destination, 0}, source);
  }
  SendStatus send_ip(const Way& way, const IpOut& out);
  // An Ethernet frame that is no IP packet.
  bool send_raw(const MacAddress& to, std::uint16_t ether_type, Bytes payload);

  // Of `frames` as many as the ring and the pool have room for now.
  std::uint32_t room(std::uint32_t frames);
  // A finished frame, for which there is room; it leaves with flush().
  void stage(Frame frame);
  void flush();
  // The device cuts packets larger than its MTU itself.
  bool takes_super_frames() const {
    return at_.link.max_tx_frame > at_.link.mtu + 14 && at_.link.tx_checksum;
  }
  // Frames given to the channel since the last call.
  std::uint32_t take_sent() { return std::exchange(sent_, 0u); }
  void reclaim();

  // Prebuilt headers are void.
  void invalidate() { ++generation_; }
  std::uint32_t generation() const { return generation_; }
  void on_resolved(std::uint32_t neighbour, const MacAddress& mac);
  void on_failed(std::uint32_t neighbour);
  void act(const proto::NeighbourAction& action);
  std::size_t take_resolve_requests(std::span<IpAddress> out);
  bool has_resolve_requests() const { return resolve_count_ != 0; }
  // Connections whose segment waited for a neighbour that does not answer.
  std::size_t take_unreachable(std::span<TcpHandle> out);

  // The time of the poll; all that is sent until the next is sent now.
  Instant now{};

 private:
  static constexpr std::size_t kMostParts =
      160;  // frames of one datagram: 65535 bytes in pieces of the least MTU
  struct Writer;
  SendStatus send_udp_slowly(const UdpSocketState& socket, const Endpoint& peer, Bytes payload);
  bool join_super_frame(const UdpSocketState& socket, const Endpoint& peer, Bytes payload);
  void close_super_frame();
  SendStatus judge_peer(const UdpSocketState& socket, const Endpoint& peer) const;
  MacAddress group_mac(const IpAddress& group) const;
  Way find_local_way(Protocol protocol, const Endpoint& destination, const IpAddress& source);
  void use_neighbour(const IpAddress& next_hop, Way& way);
  bool room_for(std::uint32_t frames) { return room(frames) >= frames; }
  SendStatus let_go(const Way& way, const IpOut& out, std::uint32_t parts);

  // A run of datagrams to one peer that may go on: all of one size, but for the last.
  //   | headroom | payload | payload | payload ...
  struct SuperFrame {
    Frame frame;  // none: nothing is open
    UdpHandle socket;
    Endpoint peer;
    proto::UdpHeader header;
    std::uint32_t size = 0;   // of a datagram
    std::uint32_t count = 0;  // of them
  };

  EgressParts at_;
  SuperFrame super_;
  HeaderCache cache_;
  WaitingRoom waiting_;
  proto::IdentificationSource identification_;
  std::array<Frame, kMostParts> parts_;
  std::uint32_t staged_ = 0;
  std::uint32_t sent_ = 0;
  std::uint32_t generation_ = 1;
  std::array<IpAddress, 256> resolve_requests_;
  std::uint32_t resolve_head_ = 0, resolve_count_ = 0;
  std::vector<TcpHandle> unreachable_;
};

}  // namespace netchannel::stack
