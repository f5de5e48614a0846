#include "bench/udp_transport.hpp"

#include <algorithm>

namespace netchannel::bench {
namespace {

constexpr std::size_t kReceiveBatch = 64;

}  // namespace

UdpTransport::UdpTransport(Host& host, const BlockOptions& options)
    : HostTransport(host),
      channel_(is_channel(host)),
      patient_(waits_without_deadline(host, options)),
      ready_(host) {
  // On the plain kernel path a call is a message, in both directions.
  const std::size_t receive = options.lane.single() ? 1 : std::max<std::size_t>(kReceiveBatch, options.batch);
  const std::size_t most = std::max<std::size_t>({receive, options.batch, options.in_flight()});
  datagrams_.resize(receive);
  arrived_.resize(receive);
  out_.resize(most);
  statuses_.resize(most);
}

Result<std::unique_ptr<UdpTransport>> UdpTransport::open(Host& host, const BlockOptions& options,
                                                         const IpAddress& near, std::size_t sockets) {
  std::unique_ptr<UdpTransport> transport(new UdpTransport(host, options));
  transport->sockets_.reserve(sockets);
  for (std::size_t i = 0; i < sockets; ++i) {
    auto socket = host.udp({near, 0});
    if (!socket) return tl::unexpected(socket.error());
    transport->sockets_.push_back(std::move(*socket));
  }
  for (std::size_t i = 0; sockets > 1 && !transport->channel_ && i < sockets; ++i) {
    if (auto added = host.poller().add(transport->sockets_[i], i); !added)
      return tl::unexpected(added.error());
  }
  return transport;
}

Result<std::unique_ptr<UdpTransport>> UdpTransport::open_client(Host& host, const BlockOptions& options,
                                                                const IpAddress& near) {
  return open(host, options, near, std::size_t{options.pairs} * options.flows);
}

Result<std::unique_ptr<UdpTransport>> UdpTransport::open_server(Host& host, const BlockOptions& options,
                                                                const IpAddress& near) {
  return open(host, options, near, options.pairs);
}

Result<void> UdpTransport::connect_to(const Far& far, std::uint32_t flows) {
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    const std::size_t pair = i / flows;
    if (pair >= far.ports.size())
      return fail(ErrorCode::invalid_argument, "the far end opened fewer ports than pairs");
    if (auto done = sockets_[i].connect({far.address, far.ports[pair]}); !done) return done;
  }
  return {};
}

Result<Sent> UdpTransport::send(std::size_t port, std::span<const Bytes> messages, bool more) noexcept {
  const std::size_t n = std::min(messages.size(), out_.size());
  for (std::size_t i = 0; i < n; ++i) out_[i] = {messages[i], {}, false};
  const auto statuses = std::span(statuses_).first(n);
  const auto taken = sockets_[port].send(std::span(out_).first(n), statuses, more ? More::yes : More::no);
  if (!taken) return tl::unexpected(taken.error());
  const auto failed = std::count_if(statuses.begin(), statuses.begin() + static_cast<std::ptrdiff_t>(*taken),
                                    [](SendStatus status) { return status != SendStatus::queued; });
  return Sent{*taken, static_cast<std::size_t>(failed)};
}

Result<std::span<const Arrived>> UdpTransport::receive(std::size_t port, std::size_t most,
                                                       Instant deadline) noexcept {
  if (port == kAnyPort && sockets_.size() > 1) return receive_from_any(most, deadline);
  return receive_from(port == kAnyPort ? 0 : port, most, {.least = 1, .deadline = deadline});
}

Result<std::span<const Arrived>> UdpTransport::receive_from(std::size_t port, std::size_t most,
                                                            Wait wait) noexcept {
  if (wait.deadline == Instant{}) wait.least = 0;
  if (patient_ && wait.least != 0) wait.deadline = kForever;
  const auto got =
      sockets_[port].receive(std::span(datagrams_).first(std::min(most, datagrams_.size())), wait);
  if (!got) {
    if (got.error().code == ErrorCode::interrupted) return nothing();
    return tl::unexpected(got.error());
  }
  arrived_count_ = *got;
  for (std::size_t i = 0; i < *got; ++i) arrived_[i] = {datagrams_[i].payload, datagrams_[i].peer.port, port};
  last_port_ = port;
  return std::span<const Arrived>(arrived_).first(*got);
}

Result<std::span<const Arrived>> UdpTransport::receive_from_any(std::size_t most, Instant deadline) noexcept {
  for (;;) {
    const auto port =
        ready_.next(sockets_.size(), deadline, [this](std::size_t i) { return sockets_[i].pending() != 0; });
    if (!port) return tl::unexpected(port.error());
    if (!*port) return nothing();
    auto got = receive_from(**port, most, {.least = 0});
    if (!got || !got->empty()) return got;
  }
}

std::span<const Arrived> UdpTransport::nothing() {
  arrived_count_ = 0;
  return {};
}

std::size_t UdpTransport::send_back() noexcept {
  const std::size_t n = std::min(arrived_count_, out_.size());
  for (std::size_t i = 0; i < n; ++i) out_[i] = {datagrams_[i].payload, datagrams_[i].peer, false};
  const auto taken = sockets_[last_port_].send(std::span(out_).first(n), std::span(statuses_).first(n));
  return taken ? *taken : 0;
}

std::vector<std::uint16_t> UdpTransport::ports() const {
  std::vector<std::uint16_t> out;
  out.reserve(sockets_.size());
  for (const UdpSocket& socket : sockets_) out.push_back(socket.local().port);
  return out;
}

}  // namespace netchannel::bench
