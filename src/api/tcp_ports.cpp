#include "api/tcp_ports.hpp"

#include <algorithm>

#include "api/channel_host.hpp"

namespace netchannel {

Result<TcpPorts::Port> TcpPorts::open(const Endpoint& local, const control::ReserveOptions& options,
                                      bool outgoing) {
  auto reserved = control::Reservation::open(Protocol::tcp, local, options);
  if (!reserved) return tl::unexpected(reserved.error());
  auto lease = std::make_unique<Lease>(host_, std::move(*reserved), options.v6_only);
  const Endpoint bound{local.address, lease->reservation.local().port};
  if (auto claimed = lease->claims.set(bound, {}); !claimed) return tl::unexpected(claimed.error());
  lease->kept = true;
  lease->outgoing = outgoing;
  if (leases_.empty()) leases_.emplace_back();
  auto free = std::find(leases_.begin() + 1, leases_.end(), nullptr);
  if (free == leases_.end()) free = leases_.insert(free, nullptr);
  *free = std::move(lease);
  return Port{bound, static_cast<stack::LeaseId>(free - leases_.begin())};
}

Result<TcpPorts::Port> TcpPorts::reserve(const Endpoint& local, const control::ReserveOptions& options) {
  return open(local, options, false);
}

Result<TcpPorts::Port> TcpPorts::for_connection(const Endpoint& local, const Endpoint& peer) {
  const stack::Tcp& tcp = host_.stack().tcp();
  for (std::size_t i = 0; i < leases_.size() && local.port == 0; ++i) {
    const std::size_t at = (next_ + i) % leases_.size();
    if (leases_[at] == nullptr || !leases_[at]->outgoing) continue;
    if (tcp.rests(static_cast<stack::LeaseId>(at))) continue;
    const Endpoint mine{local.address, leases_[at]->reservation.local().port};
    if (leases_[at]->reservation.local().address != local.address || tcp.taken(mine, peer)) continue;
    next_ = at + 1;
    return Port{mine, static_cast<stack::LeaseId>(at)};
  }
  return open(local, {}, true);
}

void TcpPorts::leave(stack::LeaseId lease) {
  if (lease == 0 || !leases_[lease]->kept) return;
  leases_[lease]->kept = false;
  ++leaving_;
  tidy();
}

void TcpPorts::tidy() {
  const stack::Tcp& tcp = host_.stack().tcp();
  for (std::size_t at = 1; at < leases_.size() && leaving_ != 0; ++at) {
    if (leases_[at] == nullptr || leases_[at]->kept || tcp.uses(static_cast<stack::LeaseId>(at)) != 0)
      continue;
    leases_[at].reset();
    --leaving_;
  }
  if (leases_.size() <= kKept) return;
  // Ports that went out once and are too many to be kept.
  for (std::size_t at = kKept; at < leases_.size(); ++at) {
    const bool idle = leases_[at] != nullptr && leases_[at]->outgoing && leases_[at]->kept;
    if (idle && tcp.uses(static_cast<stack::LeaseId>(at)) == 0) leases_[at].reset();
  }
  while (!leases_.empty() && leases_.back() == nullptr) leases_.pop_back();
}

}  // namespace netchannel
