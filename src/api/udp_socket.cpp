// The public UDP handle: owns an implementation and hands each call to it, with the host held.
#include "netchannel/udp_socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "api/host_impl.hpp"

namespace netchannel {

UdpSocket::UdpSocket(std::unique_ptr<UdpSocketImpl> impl) : impl_(std::move(impl)) {}
UdpSocket::UdpSocket(UdpSocket&&) noexcept = default;
UdpSocket& UdpSocket::operator=(UdpSocket&& other) noexcept {
  if (this != &other) {
    destroy(impl_);
    impl_ = std::move(other.impl_);
  }
  return *this;
}
UdpSocket::~UdpSocket() { destroy(impl_); }

Result<void> UdpSocket::connect(const Endpoint& peer) {
  const auto lock = hold(*impl_);
  return impl_->connect(peer);
}
Endpoint UdpSocket::local() const {
  const auto lock = hold(*impl_);
  return impl_->local();
}
Endpoint UdpSocket::peer() const {
  const auto lock = hold(*impl_);
  return impl_->peer();
}

Result<std::size_t> UdpSocket::receive(std::span<Datagram> out, Wait wait) noexcept {
  const auto lock = hold(*impl_);
  return impl_->receive(out, wait);
}
Result<std::size_t> UdpSocket::send(std::span<const OutDatagram> in, std::span<SendStatus> statuses,
                                    More more) noexcept {
  const auto lock = hold(*impl_);
  return impl_->send(in, statuses, more);
}

Result<void> UdpSocket::send_to(Bytes payload, const Endpoint& peer) noexcept {
  const auto lock = hold(*impl_);
  const OutDatagram datagram{payload, peer, false};
  SendStatus status = SendStatus::would_block;
  const auto sent = impl_->send({&datagram, 1}, {&status, 1}, More::no);
  if (!sent) return tl::unexpected(sent.error());
  switch (status) {
    case SendStatus::queued:
      return {};
    case SendStatus::would_block:
      return fail(ErrorCode::would_block, "no room to send now; wait until the socket is writable", EAGAIN);
    case SendStatus::no_peer:
      return fail(ErrorCode::invalid_argument, "no peer given and the socket is not connected", EDESTADDRREQ);
    case SendStatus::bad_peer:
      return fail(ErrorCode::invalid_argument,
                  "the peer's address or port cannot be sent to from this socket", EINVAL);
    case SendStatus::unreachable:
    case SendStatus::not_on_wire:
      return fail(ErrorCode::unreachable, "no route to the peer", EHOSTUNREACH);
    case SendStatus::message_too_long:
      return fail(ErrorCode::message_too_long, "the datagram is longer than UDP or the path allows",
                  EMSGSIZE);
    case SendStatus::refused:
      return fail(ErrorCode::refused, "an earlier datagram met a closed port at the peer", ECONNREFUSED);
    case SendStatus::failed:
      break;
  }
  return fail(ErrorCode::system, "the kernel refused to send");
}

Result<std::size_t> UdpSocket::send_to_all(Bytes payload, std::span<const Endpoint> peers) noexcept {
  const auto lock = hold(*impl_);
  std::array<OutDatagram, 64> batch;
  std::size_t total = 0;
  while (total < peers.size()) {
    const std::size_t n = std::min(batch.size(), peers.size() - total);
    for (std::size_t i = 0; i < n; ++i)
      batch[i] = OutDatagram{i == 0 ? payload : Bytes{}, peers[total + i], i != 0};
    const auto sent = impl_->send(std::span(batch).first(n), {}, More::no);
    if (!sent) return total != 0 ? Result<std::size_t>(total) : sent;
    total += *sent;
    if (*sent < n) break;
  }
  return total;
}

std::size_t UdpSocket::pending() const noexcept {
  const auto lock = hold(*impl_);
  return impl_->pending();
}
bool UdpSocket::accelerated() const noexcept { return impl_->accelerated(); }

}  // namespace netchannel
