// The public TCP handles: they own an implementation and hand each call to it, with the host held.
#include "netchannel/tcp_socket.hpp"

#include "api/host_impl.hpp"

namespace netchannel {

TcpSocket::TcpSocket(std::unique_ptr<TcpSocketImpl> impl) : impl_(std::move(impl)) {}
TcpSocket::TcpSocket(TcpSocket&&) noexcept = default;
TcpSocket& TcpSocket::operator=(TcpSocket&& other) noexcept {
  if (this != &other) {
    destroy(impl_);
    impl_ = std::move(other.impl_);
  }
  return *this;
}
TcpSocket::~TcpSocket() { destroy(impl_); }

Result<void> TcpSocket::finish_connect(Instant deadline) noexcept {
  const auto lock = hold(*impl_);
  return impl_->finish_connect(deadline);
}
Result<std::size_t> TcpSocket::receive(std::span<Bytes> out, Instant deadline) noexcept {
  const auto lock = hold(*impl_);
  return impl_->receive(out, deadline);
}
void TcpSocket::consume(std::size_t bytes) noexcept {
  const auto lock = hold(*impl_);
  impl_->consume(bytes);
}
Result<std::size_t> TcpSocket::read(MutableBytes to, Instant deadline) noexcept {
  const auto lock = hold(*impl_);
  return impl_->read({&to, 1}, deadline);
}
Result<std::size_t> TcpSocket::read(std::span<const MutableBytes> to, Instant deadline) noexcept {
  const auto lock = hold(*impl_);
  return impl_->read(to, deadline);
}
Result<std::size_t> TcpSocket::write(Bytes from, More more, Instant deadline) noexcept {
  const auto lock = hold(*impl_);
  return impl_->write({&from, 1}, more, deadline);
}
Result<std::size_t> TcpSocket::write(std::span<const Bytes> from, More more, Instant deadline) noexcept {
  const auto lock = hold(*impl_);
  return impl_->write(from, more, deadline);
}
Result<void> TcpSocket::shutdown_write() noexcept {
  const auto lock = hold(*impl_);
  return impl_->shutdown_write();
}
void TcpSocket::close() noexcept {
  const auto lock = hold(*impl_);
  impl_->close();
}
Result<void> TcpSocket::close_gracefully(Instant deadline) noexcept {
  const auto lock = hold(*impl_);
  return impl_->close_gracefully(deadline);
}
void TcpSocket::abort() noexcept {
  const auto lock = hold(*impl_);
  impl_->abort();
}
Result<void> TcpSocket::set_no_delay(bool on) noexcept {
  const auto lock = hold(*impl_);
  return impl_->set_no_delay(on);
}
Result<void> TcpSocket::set_options(const TcpOptions& options) noexcept {
  const auto lock = hold(*impl_);
  return impl_->set_options(options);
}
TcpInfo TcpSocket::info() const noexcept {
  const auto lock = hold(*impl_);
  return impl_->info();
}
Endpoint TcpSocket::local() const {
  const auto lock = hold(*impl_);
  return impl_->local();
}
Endpoint TcpSocket::peer() const {
  const auto lock = hold(*impl_);
  return impl_->peer();
}
std::size_t TcpSocket::readable() const noexcept {
  const auto lock = hold(*impl_);
  return impl_->readable();
}
std::size_t TcpSocket::writable() const noexcept {
  const auto lock = hold(*impl_);
  return impl_->writable();
}
bool TcpSocket::accelerated() const noexcept {
  const auto lock = hold(*impl_);
  return impl_->accelerated();
}

TcpListener::TcpListener(std::unique_ptr<TcpListenerImpl> impl) : impl_(std::move(impl)) {}
TcpListener::TcpListener(TcpListener&&) noexcept = default;
TcpListener& TcpListener::operator=(TcpListener&& other) noexcept {
  if (this != &other) {
    destroy(impl_);
    impl_ = std::move(other.impl_);
  }
  return *this;
}
TcpListener::~TcpListener() { destroy(impl_); }

Result<TcpSocket> TcpListener::accept(Instant deadline) noexcept {
  const auto lock = hold(*impl_);
  auto accepted = impl_->accept(deadline);
  if (!accepted) return tl::unexpected(accepted.error());
  return TcpSocket(std::move(*accepted));
}
Endpoint TcpListener::local() const {
  const auto lock = hold(*impl_);
  return impl_->local();
}
std::size_t TcpListener::waiting() const noexcept {
  const auto lock = hold(*impl_);
  return impl_->waiting();
}
bool TcpListener::accelerated() const noexcept {
  const auto lock = hold(*impl_);
  return impl_->accelerated();
}

}  // namespace netchannel
