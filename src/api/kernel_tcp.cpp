#include "api/kernel_tcp.hpp"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "api/host_impl.hpp"
#include "device/clock.hpp"
#include "kernel/socket_calls.hpp"

namespace netchannel {
namespace {

using kernel::Blocking;

constexpr std::size_t kBuffer = 64 << 10;
// How often a graceful close looks whether the peer has acknowledged: the kernel tells nobody when it does.
constexpr Duration kFirstPause = std::chrono::microseconds(100);
constexpr Duration kLongestPause = std::chrono::milliseconds(10);

kernel::TcpKernelOptions kernel_options(const TcpOptions& from) {
  return {.no_delay = from.no_delay,
          .quick_ack = from.quick_ack,
          .send_buffer = from.send_buffer,
          .receive_buffer = from.receive_buffer,
          .max_segment = from.max_segment,
          .user_timeout = from.user_timeout,
          .keepalive = from.keepalive,
          .keepalive_idle = from.keepalive_idle,
          .keepalive_interval = from.keepalive_interval,
          .keepalive_probes = from.keepalive_probes,
          .congestion = from.congestion == CongestionControl::reno ? "reno" : "",
          .ttl = from.ttl,
          .tos = from.tos};
}

// The network's ETIMEDOUT has its errno; a deadline of the caller's has none.
Error deadline_passed() { return {ErrorCode::timed_out, 0, "the deadline has passed; wait longer"}; }

// What is left of `from` after its first `done` bytes, as much as one call takes.
std::span<const Bytes> rest_of(std::span<const Bytes> from, std::size_t done,
                               std::array<Bytes, kernel::kMostPieces>& into) {
  std::size_t n = 0;
  for (const Bytes piece : from) {
    if (done >= piece.size()) {
      done -= piece.size();
      continue;
    }
    if (n == into.size()) break;
    into[n++] = piece.subspan(std::exchange(done, 0));
  }
  return std::span<const Bytes>(into).first(n);
}

template <class Piece>
std::size_t size_of(std::span<const Piece> pieces) {
  std::size_t total = 0;
  for (const Piece& piece : pieces) total += piece.size();
  return total;
}

}  // namespace

bool KernelTcpSockets::prepare_sleep(int epoll) {
  bool nothing_held = true;
  for (KernelTcpBase* member : members_) {
    nothing_held &= !member->holds_bytes();
    if (member->watched_) continue;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    ++syscalls;
    member->watched_ = ::epoll_ctl(epoll, EPOLL_CTL_ADD, member->descriptor(), &event) == 0;
  }
  return nothing_held;
}

KernelTcpBase::KernelTcpBase(HostImpl& host, KernelTcpSockets& siblings)
    : host_(host), siblings_(siblings), place_(siblings.members_.size()) {
  siblings_.members_.push_back(this);
}

KernelTcpBase::~KernelTcpBase() {
  siblings_.members_.back()->place_ = place_;
  siblings_.members_[place_] = siblings_.members_.back();
  siblings_.members_.pop_back();
}

// Before the number of the descriptor can become another's.
void KernelTcpBase::leave(Pollable& self) noexcept {
  host_.poller_impl.forget(&self);
  watched_ = true;  // a closed descriptor has left the host's epoll instance, and is not put there again
}

// On a host that has a loop to turn, too: its other sockets are not to be kept waiting.
template <class Ask>
auto KernelTcpBase::ask_and_turn(Instant deadline, short events, const Ask& ask) noexcept
    -> decltype(ask(Blocking::no)) {
  for (;;) {
    auto answer = ask(Blocking::no);
    if (answer || answer.error().code != ErrorCode::would_block || deadline == kNow) return answer;
    if (host_.poll()) {
      host_.busy();
      continue;
    }
    if (deadline != kForever && device::monotonic_now() >= deadline) return tl::unexpected(deadline_passed());
    if (!host_.idle(deadline, descriptor(), events))
      return fail(ErrorCode::interrupted, "a signal came while waiting", EINTR);
  }
}

template <class Ask>
auto KernelTcpBase::ask_until(Instant deadline, short events, const Ask& ask) noexcept
    -> decltype(ask(Blocking::no)) {
  if (!host_.passive) return ask_and_turn(deadline, events, ask);
  const WaitMode mode = host_.options.wait;
  if (mode == WaitMode::block && deadline == kForever) return ask(Blocking::yes);
  Instant began;
  for (;;) {
    auto answer = ask(Blocking::no);
    if (answer || answer.error().code != ErrorCode::would_block || deadline == kNow) return answer;
    if (mode == WaitMode::spin && deadline == kForever) continue;
    const Instant now = device::monotonic_now();
    if (now >= deadline) return tl::unexpected(deadline_passed());
    if (mode == WaitMode::spin) continue;
    if (began == Instant{}) began = now;
    if (mode == WaitMode::adaptive && now - began < host_.options.spin_time) continue;
    if (deadline == kForever) return ask(Blocking::yes);
    const auto ready = kernel::wait_for(descriptor(), events, deadline, siblings_.syscalls);
    if (!ready) return tl::unexpected(ready.error());
  }
}

// --- connections ---

KernelTcp::KernelTcp(HostImpl& host, KernelTcpSockets& siblings, kernel::TcpSocket socket)
    : KernelTcpBase(host, siblings), socket_(std::move(socket)) {}

KernelTcp::~KernelTcp() { close(); }

Result<std::unique_ptr<TcpSocketImpl>> KernelTcp::connect(HostImpl& host, KernelTcpSockets& siblings,
                                                          const Endpoint& peer,
                                                          const ConnectOptions& options) {
  const bool in_the_call =
      host.passive && host.options.wait == WaitMode::block && options.deadline == kForever;
  const Blocking blocking = in_the_call ? Blocking::yes : Blocking::no;
  auto opened =
      kernel::TcpSocket::open(peer, options.local, kernel_options(options.tcp), blocking, siblings.syscalls);
  if (!opened) return tl::unexpected(opened.error());
  auto begun = opened->connect(blocking);
  if (!begun && begun.error().code != ErrorCode::would_block) return tl::unexpected(begun.error());
  return std::unique_ptr<TcpSocketImpl>(std::make_unique<KernelTcp>(host, siblings, std::move(*opened)));
}

Result<void> KernelTcp::finish_connect(Instant deadline) noexcept {
  return ask_until(deadline, POLLOUT, [&](Blocking blocking) { return socket_.connect(blocking); });
}

// What a look ahead met, told once.
Result<void> KernelTcp::tell_failure() noexcept {
  if (!failure_) return {};
  const Error error = *failure_;
  failure_.reset();
  return tl::unexpected(error);
}

// One call that reads behind what is there already. 0: the end of the stream, or no room.
Result<std::size_t> KernelTcp::fill(Instant deadline) noexcept {
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::byte[]>(kBuffer);
  // What was shown moves only after a consume(), and at most once for each byte that it makes room for.
  if (begin_ >= kBuffer / 2) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  const MutableBytes room(buffer_.get() + end_, kBuffer - end_);
  if (room.empty()) return 0;
  auto got =
      ask_until(deadline, POLLIN, [&](Blocking blocking) { return socket_.read({&room, 1}, blocking); });
  if (got) end_ += *got;
  return got;
}

Result<std::size_t> KernelTcp::receive(std::span<Bytes> out, Instant deadline) noexcept {
  if (out.empty()) return 0;
  if (!holds_bytes()) {
    begin_ = end_ = 0;
    if (auto well = tell_failure(); !well) return tl::unexpected(well.error());
    const auto got = fill(deadline);
    if (!got || *got == 0) return got;
  } else if (shown_all_ && !failure_) {
    // Whoever has seen it all and asks again wants more than that; what hinders it is told once this is read.
    const auto more = fill(kNow);
    if (!more && more.error().code != ErrorCode::would_block) failure_ = more.error();
  }
  shown_all_ = true;
  out[0] = Bytes(buffer_.get() + begin_, end_ - begin_);
  return out[0].size();
}

void KernelTcp::consume(std::size_t bytes) noexcept {
  begin_ += std::min(bytes, end_ - begin_);
  if (bytes != 0) shown_all_ = false;
}

std::size_t KernelTcp::copy_out(std::span<const MutableBytes> to) noexcept {
  std::size_t total = 0;
  for (const MutableBytes piece : to) {
    const std::size_t n = std::min(piece.size(), end_ - begin_);
    std::copy_n(buffer_.get() + begin_, n, piece.begin());
    consume(n);
    total += n;
  }
  return total;
}

Result<std::size_t> KernelTcp::read(std::span<const MutableBytes> to, Instant deadline) noexcept {
  if (size_of(to) == 0) return 0;
  if (holds_bytes()) return copy_out(to);
  if (auto well = tell_failure(); !well) return tl::unexpected(well.error());
  return ask_until(deadline, POLLIN, [&](Blocking blocking) { return socket_.read(to, blocking); });
}

Result<std::size_t> KernelTcp::write(std::span<const Bytes> from, More more, Instant deadline) noexcept {
  const std::size_t all = size_of(from);
  std::array<Bytes, kernel::kMostPieces> rest;
  std::size_t done = 0;
  do {
    const auto left = done == 0 && from.size() <= rest.size() ? from : rest_of(from, done, rest);
    const std::size_t asked = size_of(left);
    const bool more_follows = more == More::yes || done + asked < all;
    bool blocked = false;
    const auto wrote = ask_until(deadline, POLLOUT, [&](Blocking blocking) {
      blocked = blocking == Blocking::yes;
      return socket_.write(left, more_follows, blocking);
    });
    if (!wrote) return done != 0 ? Result<std::size_t>(done) : wrote;
    done += *wrote;
    // A blocking call stops short only for a signal, which is the caller's to deal with.
    if (blocked && *wrote < asked) break;
  } while (done < all);
  return done;
}

void KernelTcp::close() noexcept {
  if (fd() < 0) return;
  // RFC 2525 section 2.17: the kernel resets for unread data, and what we hold of it is unread as well.
  if (holds_bytes()) return abort();
  leave(*this);
  socket_.close();
}

void KernelTcp::abort() noexcept {
  if (fd() < 0) return;
  leave(*this);
  begin_ = end_ = 0;
  socket_.abort();
}

Result<void> KernelTcp::close_gracefully(Instant deadline) noexcept {
  if (fd() < 0) return fail(ErrorCode::closed, "the socket is closed", EBADF);
  (void)socket_.shutdown_write();  // that this is not the first time is no error
  Result<void> outcome;
  Duration pause = kFirstPause;
  while (outcome && !kernel::all_acknowledged(socket_.info())) {
    ++siblings_.syscalls;
    const Instant now = device::monotonic_now();
    if (now >= deadline) {
      outcome = tl::unexpected(deadline_passed());
    } else if (host_.options.wait != WaitMode::spin) {
      // Not on the descriptor, which has nothing to wait for, and says so at once if the peer ended first.
      const auto slept = kernel::wait_for(-1, 0, earlier(deadline, now + pause), siblings_.syscalls);
      if (!slept) return tl::unexpected(slept.error());
      pause = std::min(2 * pause, kLongestPause);
    }
  }
  if (outcome && socket_.take_error().sys_errno != 0) {
    outcome = fail(ErrorCode::reset, "the peer has reset the connection", ECONNRESET);
  }
  close();
  return outcome;
}

Result<void> KernelTcp::set_options(const TcpOptions& options) noexcept {
  return socket_.set_options(kernel_options(options));
}

Result<void> KernelTcp::set_no_delay(bool on) noexcept {
  kernel::TcpKernelOptions wanted = socket_.options();
  wanted.no_delay = on;
  return socket_.set_options(wanted);
}

// --- listeners ---

KernelTcpListener::KernelTcpListener(HostImpl& host, KernelTcpSockets& siblings, kernel::TcpListener listener)
    : KernelTcpBase(host, siblings), listener_(std::move(listener)) {}

KernelTcpListener::~KernelTcpListener() { leave(*this); }

Result<std::unique_ptr<TcpListenerImpl>> KernelTcpListener::open(HostImpl& host, KernelTcpSockets& siblings,
                                                                 const Endpoint& local,
                                                                 const ListenOptions& options) {
  kernel::TcpListenerOptions wanted;
  wanted.backlog = options.backlog;
  wanted.reuse_address = options.reuse_address;
  wanted.reuse_port = options.reuse_port;
  wanted.v6_only = options.v6_only;
  wanted.tcp = kernel_options(options.tcp);
  auto listener = kernel::TcpListener::open(local, wanted, siblings.syscalls);
  if (!listener) return tl::unexpected(listener.error());
  return std::unique_ptr<TcpListenerImpl>(
      std::make_unique<KernelTcpListener>(host, siblings, std::move(*listener)));
}

Result<std::unique_ptr<TcpSocketImpl>> KernelTcpListener::accept(Instant deadline) noexcept {
  auto accepted = ask_until(deadline, POLLIN, [&](Blocking blocking) { return listener_.accept(blocking); });
  if (!accepted) return tl::unexpected(accepted.error());
  return std::unique_ptr<TcpSocketImpl>(std::make_unique<KernelTcp>(host_, siblings_, std::move(*accepted)));
}

}  // namespace netchannel
