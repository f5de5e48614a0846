#include <algorithm>
#include <array>

#include "bench/transport.hpp"

namespace netchannel::bench {
namespace {

constexpr std::size_t kReceiveBatch = 64;

}  // namespace

HostOptions host_options(const BlockOptions& options) {
  HostOptions out;
  out.path = options.lane.path;
  out.device = options.device;
  out.wait = options.wait;
  out.mtu = options.mtu;
  return out;
}

HostTransport::HostTransport(Host& host, const BlockOptions& options)
    : host_(host),
      channel_(host.path() != Path::kernel && host.path() != Path::kernel_batched),
      // A plain program blocks in recvfrom itself. With a deadline the kernel path must ask ppoll first, a
      // second call.
      patient_(!channel_ && options.wait != WaitMode::spin && options.rate == 0) {
  // On the plain kernel path a call is a message, in both directions.
  const std::size_t receive = options.lane.single() ? 1 : std::max<std::size_t>(kReceiveBatch, options.batch);
  const std::size_t most = std::max<std::size_t>({receive, options.batch, options.in_flight()});
  datagrams_.resize(receive);
  arrived_.resize(receive);
  out_.resize(most);
  statuses_.resize(most);
}

Result<std::unique_ptr<HostTransport>> HostTransport::open(Host& host, const BlockOptions& options,
                                                           const IpAddress& near, std::size_t sockets) {
  std::unique_ptr<HostTransport> transport(new HostTransport(host, options));
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

Result<std::unique_ptr<HostTransport>> HostTransport::open_client(Host& host, const BlockOptions& options,
                                                                  const IpAddress& near) {
  return open(host, options, near, std::size_t{options.pairs} * options.flows);
}

Result<std::unique_ptr<HostTransport>> HostTransport::open_server(Host& host, const BlockOptions& options,
                                                                  const IpAddress& near) {
  return open(host, options, near, options.pairs);
}

Result<void> HostTransport::connect_to(const Far& far, std::uint32_t flows) {
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    const std::size_t pair = i / flows;
    if (pair >= far.ports.size())
      return fail(ErrorCode::invalid_argument, "the far end opened fewer ports than pairs");
    if (auto done = sockets_[i].connect({far.address, far.ports[pair]}); !done) return done;
  }
  return {};
}

Result<Sent> HostTransport::send(std::size_t port, std::span<const Bytes> messages, bool more) noexcept {
  const std::size_t n = std::min(messages.size(), out_.size());
  for (std::size_t i = 0; i < n; ++i) out_[i] = {messages[i], {}, false};
  const auto statuses = std::span(statuses_).first(n);
  const auto taken = sockets_[port].send(std::span(out_).first(n), statuses, more ? More::yes : More::no);
  if (!taken) return tl::unexpected(taken.error());
  const auto failed = std::count_if(statuses.begin(), statuses.begin() + static_cast<std::ptrdiff_t>(*taken),
                                    [](SendStatus status) { return status != SendStatus::queued; });
  return Sent{*taken, static_cast<std::size_t>(failed)};
}

Result<std::span<const Arrived>> HostTransport::receive(std::size_t port, std::size_t most,
                                                        Instant deadline) noexcept {
  if (port == kAnyPort && sockets_.size() > 1) return receive_from_any(most, deadline);
  return receive_from(port == kAnyPort ? 0 : port, most, {.least = 1, .deadline = deadline});
}

Result<std::span<const Arrived>> HostTransport::receive_from(std::size_t port, std::size_t most,
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

// In turn, so that no port starves. A channel path knows without a call where something waits; a kernel path
// asks the poller, as a program on many kernel sockets does.
Result<std::span<const Arrived>> HostTransport::receive_from_any(std::size_t most,
                                                                 Instant deadline) noexcept {
  if (!channel_) return receive_from_ready(most, deadline);
  for (;;) {
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
      const std::size_t port = next_port_;
      next_port_ = (next_port_ + 1) % sockets_.size();
      if (sockets_[port].pending() == 0) continue;
      return receive_from(port, most, {.least = 0});
    }
    if (host_.poll()) continue;
    if (host_.now() >= deadline) return nothing();
    host_.wait(deadline);
  }
}

Result<std::span<const Arrived>> HostTransport::receive_from_ready(std::size_t most,
                                                                   Instant deadline) noexcept {
  if (ready_.empty()) {
    std::array<Event, 64> events;
    const auto woken = host_.poller().wait(events, deadline);
    if (!woken && woken.error().code != ErrorCode::interrupted) return tl::unexpected(woken.error());
    for (std::size_t i = 0; woken && i < *woken; ++i) ready_.push_back(events[i].token);
  }
  while (!ready_.empty()) {
    const std::size_t port = ready_.back();
    ready_.pop_back();
    auto got = receive_from(port, most, {.least = 0});
    if (!got || !got->empty()) return got;
  }
  return nothing();
}

std::span<const Arrived> HostTransport::nothing() {
  arrived_count_ = 0;
  return {};
}

std::size_t HostTransport::send_back() noexcept {
  const std::size_t n = std::min(arrived_count_, out_.size());
  for (std::size_t i = 0; i < n; ++i) out_[i] = {datagrams_[i].payload, datagrams_[i].peer, false};
  const auto taken = sockets_[last_port_].send(std::span(out_).first(n), std::span(statuses_).first(n));
  return taken ? *taken : 0;
}

std::vector<std::uint16_t> HostTransport::ports() const {
  std::vector<std::uint16_t> out;
  out.reserve(sockets_.size());
  for (const UdpSocket& socket : sockets_) out.push_back(socket.local().port);
  return out;
}

}  // namespace netchannel::bench
