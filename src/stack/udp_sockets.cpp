#include "stack/udp_sockets.hpp"

#include <algorithm>
#include <cerrno>

namespace netchannel::stack {
namespace {

constexpr std::uint32_t kNone = UdpTable::kNone;
constexpr std::uint16_t kFirstEphemeral = 32768, kLastEphemeral = 60999;  // Linux's ip_local_port_range

std::uint32_t datagrams_in(const Frame& frame, std::uint32_t length) {
  const std::uint32_t segment = frame.desc().segment_size;
  return segment == 0 || length <= segment ? 1 : (length + segment - 1) / segment;
}

}  // namespace

UdpSockets::UdpSockets(const Sizes& sizes, const SipKey& key, CounterPage& counters)
    : rx_(sizes.rx),
      key_(key),
      counters_(counters),
      table_(sizes.sockets, key),
      sockets_(sizes.sockets),
      nodes_(sizes.rx.count + sizes.extra),
      owners_(sizes.rx.count) {
  for (std::uint32_t i = sizes.sockets; i-- > 0;) free_sockets_.push_back(i);
  free_nodes_.reserve(nodes_.size());
  for (std::size_t i = nodes_.size(); i-- > 0;) free_nodes_.push_back(static_cast<std::uint32_t>(i));
  ready_.reserve(sizes.sockets);
}

UdpSocketState* UdpSockets::get(UdpHandle socket) {
  const std::uint32_t index = index_of(socket);
  if (!socket || index >= sockets_.size() || sockets_[index].handle != socket) return nullptr;
  return &sockets_[index];
}

Result<std::uint16_t> UdpSockets::choose_port(const UdpBinding& binding) {
  constexpr std::uint32_t kRange = kLastEphemeral - kFirstEphemeral + 1;
  const std::uint64_t start = siphash(key_, std::array{std::uint64_t{0x706f7274}, ports_chosen_++});
  UdpBinding tried = binding;
  tried.reuse_address = tried.reuse_port = false;  // a port that is chosen is shared with nobody
  for (std::uint32_t i = 0; i < kRange; ++i) {
    tried.local.port = static_cast<std::uint16_t>(kFirstEphemeral + (start + i) % kRange);
    if (!table_.conflicts(tried, kNone)) return tried.local.port;
  }
  return fail(ErrorCode::address_in_use, "every ephemeral port is taken; close sockets that are not needed",
              EADDRINUSE);
}

Result<UdpHandle> UdpSockets::open(const UdpBind& bind) {
  if (free_sockets_.empty()) {
    return fail(ErrorCode::no_memory,
                "every UDP socket of this stack is in use; raise StackLimits::udp_sockets", ENFILE);
  }
  UdpBinding binding{bind.local, {}, bind.v6_only, bind.reuse_address, bind.reuse_port};
  if (binding.local.port == 0) {
    const auto port = choose_port(binding);
    if (!port) return tl::unexpected(port.error());
    binding.local.port = *port;
  } else if (table_.conflicts(binding, kNone)) {
    return fail(ErrorCode::address_in_use,
                "the port is taken by another socket of this host; close it or set a reuse option",
                EADDRINUSE);
  }
  const std::uint32_t index = free_sockets_.back();
  free_sockets_.pop_back();
  UdpSocketState& socket = sockets_[index];
  const auto generation = static_cast<std::uint16_t>(socket.generation + 1);
  socket = {};
  socket.generation = generation;
  socket.handle = {std::uint32_t{generation} << 16 | (index + 1)};
  socket.binding = binding;
  socket.any_address = bind.local.address.is_unspecified();
  socket.any_v4 = bind.local.address.is_v4();
  socket.broadcast = bind.broadcast;
  socket.dont_fragment = bind.dont_fragment;
  socket.all_errors = bind.all_errors;
  socket.ttl = bind.ttl;
  socket.tos = bind.tos;
  socket.receive_buffer = bind.receive_buffer;
  socket.receive_frames = bind.receive_frames != 0 ? bind.receive_frames : std::max(rx_.count / 4 * 3, 1u);
  table_.insert(index, binding);
  return socket.handle;
}

void UdpSockets::drop_head(UdpSocketState& socket) {
  const std::uint32_t index = socket.head;
  Node& node = nodes_[index];
  socket.head = node.next;
  if (socket.head == kNone) socket.tail = kNone;
  socket.waiting_bytes -= node.charge;
  node.frame = {};
  free_nodes_.push_back(index);
}

void UdpSockets::close(UdpHandle handle) {
  UdpSocketState* socket = get(handle);
  if (socket == nullptr) return;
  while (socket->head != kNone) drop_head(*socket);
  if (socket->ready_listed) std::erase(ready_, handle);
  const std::uint32_t index = index_of(handle);
  table_.erase(index);
  socket->handle = {};
  free_sockets_.push_back(index);
}

void UdpSockets::connect(UdpSocketState& socket, const IpAddress& source, const Endpoint& peer) {
  const std::uint32_t index = index_of(socket.handle);
  table_.erase(index);
  socket.binding.local.address = source;
  socket.binding.peer = peer;
  table_.insert(index, socket.binding);
}

void UdpSockets::disconnect(UdpSocketState& socket) {
  if (!socket.binding.connected()) return;
  const std::uint32_t index = index_of(socket.handle);
  table_.erase(index);
  // As the kernel does: the address that connecting chose goes with the peer.
  if (socket.any_address) {
    socket.binding.local.address = socket.any_v4 ? IpAddress::any_v4() : IpAddress::any_v6();
  }
  socket.binding.peer = {};
  table_.insert(index, socket.binding);
}

void UdpSockets::mark_ready(UdpSocketState& socket) {
  if (socket.ready_listed) return;
  socket.ready_listed = true;
  ready_.push_back(socket.handle);
}

bool UdpSockets::enqueue(UdpSocketState& socket, Frame&& frame, const UdpArrival& arrival) {
  const auto charge = static_cast<std::uint32_t>(frame.size());
  // One packet is always taken, or a reader with a small buffer would never see a large one.
  const bool over = socket.head != kNone && socket.waiting_bytes + charge > socket.receive_buffer;
  if (over || (arrival.rx_slot && socket.held_frames >= socket.receive_frames)) {
    counters_.drop(DropReason::udp_queue_full);
    return false;
  }
  if (free_nodes_.empty()) {
    counters_.drop(DropReason::no_frames);
    return false;
  }
  if (arrival.rx_slot) {
    owners_[frame.desc().slot - rx_.first] = socket.handle;
    ++socket.held_frames;
  }
  const std::uint32_t index = free_nodes_.back();
  free_nodes_.pop_back();
  Node& node = nodes_[index];
  const std::uint32_t datagrams = datagrams_in(frame, arrival.length);
  node.frame = std::move(frame);
  node.packet = arrival;
  node.charge = charge;
  node.next = kNone;
  (socket.tail == kNone ? socket.head : nodes_[socket.tail].next) = index;
  socket.tail = index;
  socket.waiting += datagrams;
  socket.waiting_bytes += charge;
  counters_.add(Counter::udp_received, datagrams);
  mark_ready(socket);
  return true;
}

UdpSockets::Delivery UdpSockets::deliver(Frame&& frame, const UdpArrival& arrival) {
  const UdpTable::Found found = table_.find(arrival.local, arrival.peer);
  if (found.socket == kNone) {
    counters_.drop(found.port_in_use ? DropReason::udp_wrong_peer : DropReason::udp_no_socket);
    return Delivery::nobody;
  }
  const bool taken = enqueue(sockets_[found.socket], std::move(frame), arrival);
  return taken ? Delivery::delivered : Delivery::dropped;
}

void UdpSockets::deliver_broadcast(const Frame& frame, const UdpArrival& arrival) {
  UdpArrival copy = arrival;
  std::size_t at = 0;
  std::uint32_t socket = table_.next_for_broadcast(arrival.local, at);
  if (socket == kNone) counters_.drop(DropReason::udp_no_socket);
  for (; socket != kNone; socket = table_.next_for_broadcast(arrival.local, at)) {
    enqueue(sockets_[socket], frame.share(), copy);
    copy.rx_slot = false;  // the slot is charged to the first only
  }
}

std::size_t UdpSockets::receive(UdpHandle handle, std::span<Datagram> out) {
  UdpSocketState* socket = get(handle);
  if (socket == nullptr) return 0;
  std::size_t n = 0;
  while (n < out.size() && socket->head != kNone) {
    Node& node = nodes_[socket->head];
    UdpArrival& packet = node.packet;
    const std::uint32_t segment = node.frame.desc().segment_size;
    const bool last = segment == 0 || packet.length <= segment;
    const std::uint32_t length = last ? packet.length : segment;
    Datagram& datagram = out[n++];
    datagram.payload = node.frame.bytes().subspan(packet.offset, length);
    datagram.peer = packet.peer;
    datagram.local = packet.local;
    datagram.arrival = packet.when;
    datagram.tos = packet.tos;
    datagram.ttl = packet.ttl;
    datagram.truncated = false;
    datagram.slow_path = packet.slow_path;
    --socket->waiting;
    if (last) {
      datagram.frame = std::move(node.frame);
      drop_head(*socket);
    } else {
      datagram.frame = node.frame.share();
      packet.offset += segment;
      packet.length -= segment;
    }
  }
  return n;
}

void UdpSockets::raise(UdpSocketState& socket, const SocketError& error) {
  socket.error = error;
  mark_ready(socket);
}

bool UdpSockets::deliver_error(const Endpoint& flow_local, const SocketError& error, bool hard) {
  const UdpTable::Found found = table_.find(flow_local, error.peer);
  if (found.socket == kNone) return false;
  UdpSocketState& socket = sockets_[found.socket];
  if (!socket.all_errors && !(hard && socket.binding.connected())) return true;
  raise(socket, error);
  counters_.add(Counter::icmp_errors_delivered);
  return true;
}

void UdpSockets::on_slot_home(std::uint32_t slot) {
  UdpHandle& owner = owners_[slot - rx_.first];
  if (!owner) return;
  if (UdpSocketState* socket = get(owner)) --socket->held_frames;
  owner = {};
}

std::size_t UdpSockets::take_ready(std::span<UdpHandle> out) {
  const std::size_t n = std::min(out.size(), ready_.size());
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = ready_[i];
    get(ready_[i])->ready_listed = false;
  }
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(n));
  return n;
}

}  // namespace netchannel::stack
