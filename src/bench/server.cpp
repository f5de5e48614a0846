#include "bench/server.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "bench/environment.hpp"
#include "bench/session.hpp"
#include "bench/signals.hpp"

namespace netchannel::bench {
namespace {

constexpr std::size_t kBatch = 64;
constexpr int kMostTurns = 4;  // batches of one service before the others' turn
// Tokens of the poller: the services' come between these.
constexpr std::uint64_t kControlToken = 0;
constexpr std::uint64_t kFirstClientToken = 1000;
constexpr std::size_t kMostSessions = kMostPairs + 16;

std::string_view name_of(int kind) {
  constexpr std::array<std::string_view, 3> kNames = {"echo", "discard", "mirror"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Answering these would let two echo services talk to each other for ever (RFC 862, RFC 864).
bool answers_by_itself(std::uint16_t port) { return port == 7 || port == 19; }

// The parent's sockets stay the parent's: a child that kept them would keep its ports after its death. They
// are closed and not destroyed, since what they registered with epoll is the parent's too.
void keep_only(int fd) {
  const auto kept = static_cast<unsigned>(fd);
  if (kept > 3) (void)::close_range(3, kept - 1, 0);
  (void)::close_range(kept + 1, ~0u, 0);
}

Json answer_to_hello(const FarEnd& end, const BlockOptions& own, const IpAddress& address) {
  Json ports = Json::array();
  for (const std::uint16_t port : end.ports()) ports.push_back(port);
  return {{"protocol", kProtocol},
          {"version", version()},
          {"ports", std::move(ports)},
          {"address", address.to_string()},
          {"path", own.lane.name},
          {"wait", to_string(own.wait)},
          {"mode", end.mode()},
          {"explain", end.explain()},
          {"mac", netchannel::to_string(end.mac())},
          {"boot_id", boot_id()}};
}

}  // namespace

Server::~Server() = default;

Outcome<std::unique_ptr<Server>> Server::open(const ServeOptions& options) {
  std::unique_ptr<Server> server(new Server(options));
  if (auto started = server->start(); !started) return tl::unexpected(started.error());
  return server;
}

Outcome<void> Server::start() {
  datagrams_.resize(kBatch);
  replies_.resize(kBatch);
  if (!options_.lane.raw) {
    if (auto opened = open_host(); !opened) return opened;
    if (options_.services) {
      if (auto opened = open_services(); !opened) return opened;
    }
  }
  if (auto opened = open_control(); !opened) return opened;
  describe_all();
  return {};
}

Outcome<void> Server::open_host() {
  BlockOptions block;
  block.lane = options_.lane;
  block.wait = options_.wait;
  block.device = options_.device;
  block.mtu = options_.mtu;
  HostOptions wanted = host_options(block);
  // The sessions of a kernel path are processes of their own and wait as they were told. If this one spun
  // beside them, it would take a processor from what they measure.
  if (options_.lane.kernel()) wanted.wait = WaitMode::block;
  wanted.addresses = options_.addresses;
  wanted.gateways = options_.gateways;
  wanted.xdp = options_.xdp;
  auto host = Host::open(wanted);
  if (!host) return fail_with(host.error(), fmt::format("cannot open the {} path", options_.lane.name));
  host_.emplace(std::move(*host));
  options_.lane.path = host_->path();
  if (options_.lane.name == "auto") options_.lane.name = netchannel::to_string(host_->path());
  if (options_.on_host) return options_.on_host(*host_);
  return {};
}

Outcome<void> Server::open_services() {
  const std::array wanted = {std::pair{Kind::echo, options_.echo_port},
                             std::pair{Kind::discard, options_.discard_port},
                             std::pair{Kind::mirror, options_.mirror_port}};
  tcp_services_.emplace(*host_);
  for (const auto& [kind, port] : wanted) {
    if (auto opened = open_service(kind, port); !opened) return opened;
  }
  for (std::size_t i = 0; i < services_.size(); ++i) {
    if (auto added = host_->poller().add(services_[i].socket, i + 1); !added)
      return fail_with(added.error(), "cannot watch a service");
  }
  return {};
}

Outcome<void> Server::open_service(Kind kind, std::uint16_t port) {
  const bool any = options_.bind.empty();
  const std::vector<IpAddress> addresses =
      any ? std::vector{IpAddress::any_v4(), IpAddress::any_v6()} : options_.bind;
  for (const IpAddress& address : addresses) {
    const Endpoint local{address, port};
    UdpOptions wanted;
    wanted.v6_only = true;
    auto socket = host_->udp(local, wanted);
    if (socket) {
      services_.push_back({kind, std::move(*socket)});
      if (auto opened = open_tcp_service(kind, local); !opened) return opened;
      continue;
    }
    // A machine or an interface without IPv6 is served over IPv4.
    const ErrorCode code = socket.error().code;
    const bool no_family = code == ErrorCode::not_supported || code == ErrorCode::address_not_available;
    if (any && address.is_v6() && no_family) continue;
    return cannot_serve(socket.error(), kind, "UDP", local);
  }
  return {};
}

Outcome<void> Server::open_tcp_service(Kind kind, const Endpoint& local) {
  const auto wanted = kind == Kind::discard ? TcpServices::Kind::discard : TcpServices::Kind::echo;
  if (auto opened = tcp_services_->open(wanted, local); !opened)
    return cannot_serve(opened.error(), kind, "TCP", local);
  return {};
}

tl::unexpected<Failure> Server::cannot_serve(const Error& error, Kind kind, std::string_view protocol,
                                             const Endpoint& local) {
  return fail_with(error, fmt::format("cannot serve {} over {} on {} (change it with --port, or leave all "
                                      "services out with --services none)",
                                      name_of(static_cast<int>(kind)), protocol, local.to_string()));
}

Outcome<void> Server::open_control() {
  const IpAddress at =
      options_.bind.size() == 1 && options_.lane.path != Path::tap ? options_.bind[0] : IpAddress::any_v6();
  auto listener = ControlListener::open({at, options_.control_port});
  if (!listener)
    return fail_with(listener.error(), fmt::format("cannot listen on TCP port {}", options_.control_port));
  listener_.emplace(std::move(*listener));
  if (!host_) return {};
  if (auto added = host_->poller().add(listener_->fd(), kControlToken); !added) {
    return fail_with(added.error(), "cannot watch the control port");
  }
  return {};
}

void Server::describe_all() {
  const std::string control = fmt::format("bench on TCP {}", options_.control_port);
  if (!host_) {
    description_.push_back(
        fmt::format("serving {} over {}, wait {}", control, options_.lane.name, to_string(options_.wait)));
    return;
  }
  std::string what = control;
  if (options_.services) {
    what = fmt::format("echo {}, discard {}, mirror {} over UDP and TCP, {}", options_.echo_port,
                       options_.discard_port, options_.mirror_port, control);
  }
  std::vector<std::string> where;
  where.reserve(options_.bind.size() + options_.addresses.size() + 1);
  for (const IpAddress& address : options_.bind) where.push_back(address.to_string());
  for (const Prefix& own : options_.addresses) where.push_back(own.address.to_string());
  if (where.empty()) where.emplace_back("every address");
  description_.push_back(fmt::format("serving {} on {} over {} ({}), wait {}", what, fmt::join(where, ", "),
                                     netchannel::to_string(host_->path()), host_->mode(),
                                     to_string(options_.wait)));
  for (const std::string& line : host_->explain()) description_.push_back(line);
}

Outcome<void> Server::run() {
  ::signal(SIGPIPE, SIG_IGN);
  if (!host_) return run_raw();
  // A signal that comes just before the wait is seen a second later.
  while (!interrupted()) poll_services(host_->now() + std::chrono::seconds(1));
  return {};
}

Outcome<void> Server::run_raw() {
  while (!interrupted()) {
    pollfd one{listener_->fd(), POLLIN, 0};
    if (::poll(&one, 1, 1000) > 0) accept_client();
  }
  return {};
}

void Server::poll_services(Instant deadline) {
  std::array<Event, 32> events;
  const auto ready = host_->poller().wait(events, deadline);
  if (!ready) return;
  for (std::size_t i = 0; i < *ready; ++i) {
    const std::uint64_t token = events[i].token;
    if (token >= TcpServices::kFirstToken) {
      if (tcp_services_) tcp_services_->handle(events[i]);
    } else if (token == kControlToken) {
      if (!in_session_) accept_client();
    } else if (token >= kFirstClientToken) {
      if (!in_session_) hear_client(static_cast<int>(token - kFirstClientToken));
    } else {
      serve(services_[token - 1]);
    }
  }
}

void Server::serve(Service& service) {
  for (int turn = 0; turn < kMostTurns; ++turn) {
    const auto got = service.socket.receive(datagrams_, {.least = 0});
    if (!got) {
      // An ICMP error of somebody that we answered: told once, concerns nobody else.
      if (got.error().code == ErrorCode::refused || got.error().code == ErrorCode::unreachable) continue;
      return;
    }
    if (*got == 0) return;
    if (service.kind == Kind::discard) continue;
    std::size_t n = 0;
    for (const Datagram& datagram : std::span(datagrams_).first(*got)) {
      if (!answers_by_itself(datagram.peer.port)) replies_[n++] = {datagram.payload, datagram.peer, false};
    }
    (void)service.socket.send(std::span(replies_).first(n));
  }
}

// A client on a channel path is heard only when it has said something, so that a silent one stops nobody.
void Server::accept_client() {
  while (sessions_ > 0 && ::waitpid(-1, nullptr, WNOHANG) > 0) --sessions_;
  auto control = listener_->accept();
  if (!control || sessions_ >= kMostSessions) return;
  if (options_.lane.kernel()) return run_in_child(std::move(*control));
  if (!host_) return handle(*control, std::chrono::seconds(2));
  // Too many that say nothing: one of them makes room for the newcomer.
  if (clients_.size() >= kMostSessions) {
    (void)host_->poller().remove(clients_.begin()->first);
    clients_.erase(clients_.begin());
  }
  const int fd = control->fd();
  if (!host_->poller().add(fd, kFirstClientToken + static_cast<std::uint64_t>(fd))) return;
  clients_.emplace(fd, std::move(*control));
}

void Server::hear_client(int fd) {
  auto client = clients_.extract(fd);
  if (client.empty()) return;
  (void)host_->poller().remove(fd);
  handle(client.mapped(), std::chrono::milliseconds(100));
}

BlockOptions Server::own_block(BlockOptions wanted) const {
  wanted.lane = options_.lane;
  wanted.wait = options_.wait;
  wanted.device = options_.device;
  wanted.mtu = options_.mtu;
  return wanted;
}

IpAddress Server::data_address(const Control& control) const {
  return options_.lane.path == Path::tap && !options_.addresses.empty() ? options_.addresses[0].address
                                                                        : control.local().address;
}

void Server::handle(Control& control, Duration patience) {
  const auto hello = control.receive(patience);
  if (!hello) return;
  const auto block = read_hello(*hello);
  if (!block) {
    (void)control.send({{"error", describe(block.error())}, {"version", version()}});
    return;
  }
  if (block->lane.raw != options_.lane.raw) {
    (void)control.send({{"error", fmt::format("this end serves {}, not {}: start it with --path {}",
                                              options_.lane.name, block->lane.name, block->lane.name)}});
    return;
  }
  in_session_ = true;
  run_session(control, *block);
  in_session_ = false;
}

void Server::run_in_child(Control control) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child > 0) ++sessions_;
  if (child != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  keep_only(control.fd());
  start_ticker();
  handle(control, std::chrono::seconds(2));
  ::_exit(0);
}

void Server::run_session(Control& control, const BlockOptions& wanted) {
  const BlockOptions block = own_block(wanted);
  const IpAddress address = data_address(control);
  // A session's process on a kernel path has a host of its own: the sockets of the services stay with the
  // parent.
  std::optional<Host> own;
  Host* host = host_ ? &*host_ : nullptr;
  const auto refuse = [&](const Error& error) {
    (void)control.send(
        {{"error", fmt::format("the far end cannot open {}: {}", block.lane.name, describe(error))}});
  };
  if (block.lane.kernel()) {
    auto opened = Host::open(host_options(block));
    if (!opened) return refuse(opened.error());
    host = &own.emplace(std::move(*opened));
  }
  const auto end = open_far_end(host, block, address);
  if (!end) return refuse(end.error());
  if (!control.send(answer_to_hello(**end, block, address))) return;
  Session session(**end, control, block);
  session.run([this] {
    if (host_ && !options_.lane.kernel()) poll_services(host_->now());
  });
}

}  // namespace netchannel::bench
