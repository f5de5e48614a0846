#include "stack/udp_table.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace netchannel::stack {

UdpTable::UdpTable(std::uint32_t sockets, const SipKey& key)
    : key_(key),
      bindings_(sockets),
      port_groups_(65536, 0),
      buckets_(std::bit_ceil(std::max<std::size_t>(sockets, 1)), kNone),
      next_in_bucket_(sockets, kNone) {}

std::uint64_t UdpTable::hash(const Endpoint& local, const Endpoint& peer) const {
  const auto to = std::bit_cast<std::array<std::uint64_t, 2>>(local.address.bytes());
  const auto from = std::bit_cast<std::array<std::uint64_t, 2>>(peer.address.bytes());
  const std::uint64_t ports = std::uint64_t{local.port} << 16 | peer.port;
  return siphash(key_, std::array{to[0], to[1], from[0], from[1], ports});
}

// 0: does not take it.
int UdpTable::score(const UdpBinding& binding, const IpAddress& local, bool v4) {
  if (binding.local.address == local) return 3;
  if (!binding.local.address.is_unspecified() || !binding.takes(v4)) return 0;
  return binding.local.address.is_v4() == v4 ? 2 : 1;
}

bool UdpTable::conflicts(const UdpBinding& wanted, std::uint32_t except) const {
  const std::uint32_t place = port_groups_[wanted.local.port];
  if (place == 0) return false;
  const auto overlap = [](const UdpBinding& a, const UdpBinding& b) {
    const bool any_a = a.local.address.is_unspecified(), any_b = b.local.address.is_unspecified();
    if (!any_a && !any_b) return a.local.address == b.local.address;
    return (a.takes(true) && b.takes(true)) || (a.takes(false) && b.takes(false));
  };
  const auto& all = groups_[place - 1].all;
  return std::any_of(all.begin(), all.end(), [&](std::uint32_t other) {
    const UdpBinding& there = bindings_[other];
    const bool may_share =
        (wanted.reuse_address && there.reuse_address) || (wanted.reuse_port && there.reuse_port);
    return other != except && !may_share && overlap(wanted, there);
  });
}

void UdpTable::insert(std::uint32_t socket, const UdpBinding& binding) {
  bindings_[socket] = binding;
  std::uint16_t& place = port_groups_[binding.local.port];
  if (place == 0) {
    if (free_groups_.empty()) {
      groups_.emplace_back();
      place = static_cast<std::uint16_t>(groups_.size());  // fewer than 65535 sockets, so fewer groups
    } else {
      place = free_groups_.back();
      free_groups_.pop_back();
    }
  }
  Group& group = groups_[place - 1];
  group.all.push_back(socket);
  if (!binding.connected()) {
    group.unconnected.insert(group.unconnected.begin(), socket);
    return;
  }
  ++group.connected;
  std::uint32_t& bucket = buckets_[hash(binding.local, binding.peer) & (buckets_.size() - 1)];
  next_in_bucket_[socket] = bucket;
  bucket = socket;
}

void UdpTable::erase(std::uint32_t socket) {
  const UdpBinding& binding = bindings_[socket];
  std::uint16_t& place = port_groups_[binding.local.port];
  Group& group = groups_[place - 1];
  std::erase(group.all, socket);
  if (binding.connected()) {
    --group.connected;
    std::uint32_t* link = &buckets_[hash(binding.local, binding.peer) & (buckets_.size() - 1)];
    while (*link != socket) link = &next_in_bucket_[*link];
    *link = next_in_bucket_[socket];
  } else {
    std::erase(group.unconnected, socket);
  }
  if (!group.all.empty()) return;
  free_groups_.push_back(place);
  place = 0;
}

// The newest of those with the best score, or the one of a reuse_port group that the flow's hash names.
std::uint32_t UdpTable::choose(const Group& group, int best, const Endpoint& local,
                               const Endpoint& peer) const {
  const bool v4 = local.address.is_v4();
  std::uint32_t newest = kNone, sharing = 0;
  for (const std::uint32_t socket : group.unconnected) {
    if (score(bindings_[socket], local.address, v4) != best) continue;
    if (newest == kNone) newest = socket;
    if (bindings_[socket].reuse_port) ++sharing;
  }
  if (sharing < 2 || !bindings_[newest].reuse_port) return newest;
  auto left = static_cast<std::uint32_t>((hash(local, peer) >> 32) * sharing >> 32);
  for (const std::uint32_t socket : group.unconnected) {
    if (!bindings_[socket].reuse_port || score(bindings_[socket], local.address, v4) != best) continue;
    if (left-- == 0) return socket;
  }
  return newest;
}

UdpTable::Found UdpTable::find(const Endpoint& local, const Endpoint& peer) const {
  const std::uint32_t place = port_groups_[local.port];
  if (place == 0) return {};
  const Group& group = groups_[place - 1];
  if (group.connected != 0) {
    std::uint32_t socket = buckets_[hash(local, peer) & (buckets_.size() - 1)];
    for (; socket != kNone; socket = next_in_bucket_[socket]) {
      if (bindings_[socket].local == local && bindings_[socket].peer == peer) return {socket, true};
    }
  }
  const bool v4 = local.address.is_v4();
  int best = 0, equals = 0;
  std::uint32_t found = kNone;
  for (const std::uint32_t socket : group.unconnected) {
    const int points = score(bindings_[socket], local.address, v4);
    if (points > best) {
      best = points, found = socket, equals = 1;
    } else if (points == best && best != 0) {
      ++equals;
    }
  }
  if (equals > 1) found = choose(group, best, local, peer);
  return {found, true};
}

std::uint32_t UdpTable::next_for_broadcast(const Endpoint& local, std::size_t& at) const {
  const std::uint32_t place = port_groups_[local.port];
  if (place == 0) return kNone;
  const auto& all = groups_[place - 1].all;
  while (at < all.size()) {
    const std::uint32_t socket = all[at++];
    const UdpBinding& binding = bindings_[socket];
    // A connected socket's local address is a specific one, so it takes no broadcast, as in Linux.
    if (!binding.connected() && binding.local.address.is_unspecified() &&
        binding.takes(local.address.is_v4())) {
      return socket;
    }
  }
  return kNone;
}

}  // namespace netchannel::stack
