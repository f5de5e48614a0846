// A stack is one consumer's protocol world behind its channel: it takes bursts of frames from the channel,
// does Ethernet, IP, ICMP, UDP and TCP with them, and puts datagrams into the queues of its sockets (TCP:
// tcp.hpp); what is to be sent is written into transmit frames and handed to the channel a burst at a time.
//
//      channel rx --> adopt --> ethernet -> ip -> (reassembly) -> udp --> socket queues --> receive()
//      channel tx <-- frames <-- headers (cached for each peer) <-- udp <------------------ send()
//
// It reads no clock and makes no system call: its owner polls it with the time. All calls come from one
// thread. After open() nothing on the packet path allocates. On a bare device the stack does ARP, neighbour
// discovery, echo and ICMP errors itself; on a steered one the kernel does, and its addresses, routes and
// neighbours are fed in through the control calls.
//
// Left out on purpose: multicast groups (MLD, IGMP), router and duplicate-address discovery, forwarding.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "channel/channel.hpp"
#include "netchannel/address.hpp"
#include "netchannel/datagram.hpp"
#include "netchannel/error.hpp"
#include "netchannel/frame.hpp"
#include "netchannel/stats.hpp"
#include "netchannel/time.hpp"
#include "proto/route.hpp"
#include "stack/tcp.hpp"

namespace netchannel::stack {

// What the stack needs to know of the device at the channel's other end (see DeviceInfo).
struct LinkFacts {
  MacAddress mac;
  std::uint32_t mtu = 1500;  // layer-3 bytes
  std::uint32_t max_tx_frame =
      1514;                   // bytes of the largest frame the device takes, from the Ethernet header on
  bool bare = false;          // no kernel behind it: do ARP, neighbour discovery and echo here
  bool virtual_link = false;  // accept partial checksums that nobody marked (veth); counted
  bool tx_checksum = false;   // the device completes checksums: leave kChecksumPartial to it
  bool local = false;  // it joins hosts of this machine, which all have its addresses (local_peers.hpp)
};

struct SlotRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

struct StackLimits {
  std::uint32_t udp_sockets = 1024;
  std::uint32_t large_slots = 256;  // 128 KiB each, for what does not fit a frame; cost nothing until used
  std::uint32_t reassemblies = 64;  // datagrams being put together, at most a large slot each
  std::uint32_t reassemblies_of_source = 16;
  std::uint32_t neighbours = 1024;
  std::uint32_t waiting_frames = 1024;       // frames that wait for neighbours, together
  std::uint32_t waiting_of_neighbour = 256;  // about what Linux lets wait (unres_qlen_bytes)
  std::uint32_t burst = 64;                  // frames taken in one poll
  std::uint32_t icmp_errors_per_second = 100;
  std::uint32_t narrow_paths = 256;   // destinations whose path is known to be narrower than the link
  std::uint32_t spill_slots = 16384;  // as large as a receive slot; cost nothing until used
  TcpLimits tcp;
};

struct StackOptions {
  LinkFacts link;
  SlotRange rx;  // slots that the driver has lent to the device; the region's others are never touched
  SlotRange tx;  // slots of this stack, to send from
  std::vector<Prefix> addresses;  // ours, with the length of their network
  std::vector<proto::Route> routes;
  std::array<std::uint8_t, 32>
      secret{};  // random; keys of the hash tables, port choice and IPv4 identification
  StackLimits limits;
  bool verify_checksums = true;  // false for fuzzing only
};

// Names a socket of one stack. Never reused within 65535 closings of the same place.
struct UdpHandle {
  std::uint32_t value = 0;  // 0: none
  explicit operator bool() const { return value != 0; }
  friend auto operator<=>(const UdpHandle&, const UdpHandle&) = default;
};

struct UdpBind {
  Endpoint local;              // 0.0.0.0 or ::, or one of ours; port 0: an ephemeral one is chosen
  bool v6_only = false;        // for "::": IPv4 does not arrive here
  bool reuse_address = false;  // as the kernel's SO_REUSEADDR: shared if all have it, the newest receives
  bool reuse_port = false;     // as the kernel's SO_REUSEPORT: shared if all have it, spread by flow
  Endpoint peer;               // all zero: not connected
  std::uint32_t receive_buffer =
      1 << 20;  // bytes of packets that may wait unread; one packet is always taken
  std::uint32_t receive_frames =
      0;                       // receive slots it may hold, waiting or in the reader's hands; 0: 3/4 of all
  std::uint8_t ttl = 64;       // or hop limit
  std::uint8_t tos = 0;        // or traffic class
  bool broadcast = false;      // may send to broadcast addresses
  bool dont_fragment = false;  // datagrams above the path MTU are refused, not fragmented
  bool all_errors = false;     // ICMP errors also while not connected (IP_RECVERR)
};

struct UdpInfo {
  Endpoint local;
  Endpoint peer;
  std::uint32_t waiting = 0;        // datagrams in the queue
  std::uint32_t waiting_bytes = 0;  // of packets in the queue
  std::uint32_t held_frames = 0;    // receive slots, in the queue or in the reader's hands
};

struct SocketError {
  ErrorCode code = ErrorCode::refused;  // refused, unreachable, message_too_long
  int sys_errno = 0;                    // as the kernel would have given
  std::uint32_t mtu = 0;                // with message_too_long: what fits
  Endpoint peer;                        // where the packet that caused it went
};

struct PollResult {
  std::uint32_t frames = 0;     // taken from the channel
  std::uint32_t delivered = 0;  // packets put into socket queues
  std::uint32_t sent = 0;       // frames given to the channel by this poll
  std::uint32_t recycled = 0;   // receive slots sent home
  bool more = false;            // the burst was full: poll again before sleeping
  bool did_something() const { return frames + sent + recycled != 0; }
};

struct World;

class Stack {
 public:
  // `frames` must outlive the stack, and the stack all Datagrams received from it. Errors: invalid_argument
  // (slot ranges outside the region or overlapping, a slot too small), no_memory.
  static Result<std::unique_ptr<Stack>> open(ConsumerEnd channel, FrameRegion& frames,
                                             const StackOptions& options);
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  // One turn: reclaims sent slots, takes one burst, runs timers, sends home what was released. `now` never
  // goes back. The other calls use the `now` of the last poll or set_time().
  PollResult poll(Instant now) noexcept;
  // For calls that send between two polls and read the time: it is `now`.
  void set_time(Instant now) noexcept;
  // When a timer wants a poll even if nothing arrives. kForever: never.
  Instant next_deadline() const noexcept;
  // There is something in the channel at this moment: do not sleep.
  bool pending() noexcept;

  // For its owner to claim flows with and to sleep on; the packet rings are the stack's.
  ConsumerEnd& channel() noexcept;
  const CounterPage& counters() const noexcept;
  const LinkFacts& link() const noexcept;

  // Control. May allocate.
  void set_addresses(std::span<const Prefix> addresses);
  void set_routes(
      std::span<const proto::Route> routes);  // on a bare device the prefixes of our addresses are implied
  void set_mtu(std::uint32_t mtu);
  void set_mac(const MacAddress& mac);
  std::span<const Prefix> addresses() const noexcept;
  bool is_ours(const IpAddress& address) const noexcept;
  // Steered devices: what the kernel knows. No value: the neighbour failed or the entry is gone; packets that
  // wait for it are dropped and counted, and their sockets learn it.
  void on_neighbour(const IpAddress& address, std::optional<MacAddress> mac);
  // Steered devices: the next hops that the owner should make the kernel resolve. Each is given once a second
  // while packets wait for it.
  std::size_t take_resolve_requests(std::span<IpAddress> out) noexcept;

  // Local devices: which station has an endpoint. What speaks to us is known without this.
  void set_local_peer(Protocol protocol, const Endpoint& peer, const MacAddress& station);
  std::optional<MacAddress> local_peer(Protocol protocol, const Endpoint& peer) const noexcept;
  void forget_local_peer(Protocol protocol, const Endpoint& peer);
  // The station is gone, and with it every connection to it: at its end, if the peer had ended it, else
  // reset.
  void forget_station(const MacAddress& station);

  // UDP. Errors of open: address_in_use, address_not_available, invalid_argument, no_memory (all sockets in
  // use); with a peer also those of connect: unreachable (no route), invalid_argument.
  Result<UdpHandle> open_udp(const UdpBind& bind);
  // `source`: of a socket bound to any address; unspecified: chosen.
  Result<void> connect_udp(UdpHandle socket, const Endpoint& peer, const IpAddress& source = {});
  void disconnect_udp(UdpHandle socket);
  void close_udp(UdpHandle socket);  // what waits in its queue is dropped
  Result<UdpInfo> udp_info(UdpHandle socket) const;

  // Never waits. Returns how many were there, in order of arrival. The memory of `out` is overwritten: what
  // it held is dropped.
  std::size_t receive(UdpHandle socket, std::span<Datagram> out) noexcept;
  bool readable(UdpHandle socket) const noexcept;
  // Sockets that have become readable or have an error since they were last named here, each once. Level is
  // asked with readable().
  std::size_t take_ready(std::span<UdpHandle> out) noexcept;

  // Never waits. Copies each payload into frames and hands the burst to the channel at once. Takes the first
  // n and returns n; each of those has a status (`statuses` is empty or at least as long as `in`), the others
  // would_block: the ring or the transmit frames are exhausted, try again after a poll.
  std::size_t send(UdpHandle socket, std::span<const OutDatagram> in,
                   std::span<SendStatus> statuses = {}) noexcept;
  std::optional<SocketError> take_error(UdpHandle socket) noexcept;

  // A datagram that the owner has read from the kernel's socket. It is copied, and delivered as if it had
  // come by the wire. False: no socket takes it (counted).
  bool inject_slow_path(Bytes payload, const Endpoint& peer, const Endpoint& local) noexcept;

  Tcp& tcp() noexcept;

 private:
  explicit Stack(std::unique_ptr<World> world);
  std::unique_ptr<World> world_;
};

}  // namespace netchannel::stack
