// The public TCP handles: they own an implementation and hand each call to it.
#include "netchannel/tcp_socket.hpp"

#include "api/tcp_impl.hpp"

namespace netchannel {

TcpSocket::TcpSocket(std::unique_ptr<TcpSocketImpl> impl) : impl_(std::move(impl)) {}
TcpSocket::TcpSocket(TcpSocket&&) noexcept = default;
TcpSocket& TcpSocket::operator=(TcpSocket&&) noexcept = default;
TcpSocket::~TcpSocket() = default;

Result<void> TcpSocket::finish_connect(Instant deadline) noexcept { return impl_->finish_connect(deadline); }
Result<std::size_t> TcpSocket::receive(std::span<Bytes> out, Instant deadline) noexcept {
  return impl_->receive(out, deadline);
}
void TcpSocket::consume(std::size_t bytes) noexcept { impl_->consume(bytes); }
Result<std::size_t> TcpSocket::read(MutableBytes to, Instant deadline) noexcept {
  return impl_->read({&to, 1}, deadline);
}
Result<std::size_t> TcpSocket::read(std::span<const MutableBytes> to, Instant deadline) noexcept {
  return impl_->read(to, deadline);
}
Result<std::size_t> TcpSocket::write(Bytes from, More more, Instant deadline) noexcept {
  return impl_->write({&from, 1}, more, deadline);
}
Result<std::size_t> TcpSocket::write(std::span<const Bytes> from, More more, Instant deadline) noexcept {
  return impl_->write(from, more, deadline);
}
Result<void> TcpSocket::shutdown_write() noexcept { return impl_->shutdown_write(); }
void TcpSocket::close() noexcept { impl_->close(); }
Result<void> TcpSocket::close_gracefully(Instant deadline) noexcept {
  return impl_->close_gracefully(deadline);
}
void TcpSocket::abort() noexcept { impl_->abort(); }
Result<void> TcpSocket::set_no_delay(bool on) noexcept { return impl_->set_no_delay(on); }
Result<void> TcpSocket::set_options(const TcpOptions& options) noexcept {
  return impl_->set_options(options);
}
TcpInfo TcpSocket::info() const noexcept { return impl_->info(); }
Endpoint TcpSocket::local() const { return impl_->local(); }
Endpoint TcpSocket::peer() const { return impl_->peer(); }
std::size_t TcpSocket::readable() const noexcept { return impl_->readable(); }
std::size_t TcpSocket::writable() const noexcept { return impl_->writable(); }
bool TcpSocket::accelerated() const noexcept { return impl_->accelerated(); }

TcpListener::TcpListener(std::unique_ptr<TcpListenerImpl> impl) : impl_(std::move(impl)) {}
TcpListener::TcpListener(TcpListener&&) noexcept = default;
TcpListener& TcpListener::operator=(TcpListener&&) noexcept = default;
TcpListener::~TcpListener() = default;

Result<TcpSocket> TcpListener::accept(Instant deadline) noexcept {
  auto accepted = impl_->accept(deadline);
  if (!accepted) return tl::unexpected(accepted.error());
  return TcpSocket(std::move(*accepted));
}
Endpoint TcpListener::local() const { return impl_->local(); }
std::size_t TcpListener::waiting() const noexcept { return impl_->waiting(); }
bool TcpListener::accelerated() const noexcept { return impl_->accelerated(); }

}  // namespace netchannel
