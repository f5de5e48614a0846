// The host is what an application opens: one thread's protocol world on one path. Its sockets share its
// device, its frames and its poll loop. Everything here belongs to the thread that opened it.
//
//   auto host = netchannel::Host::open({.path = Path::automatic, .device = "eth0"});
//   auto socket = host->udp({IpAddress::any_v4(), 7});
//
// On a channel path (xdp, bulk, tap, local) the packets come from the device's ring to this thread and are
// processed here; on the kernel path the same handles stand over kernel sockets, so the same program measures
// one against the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "netchannel/device.hpp"
#include "netchannel/error.hpp"
#include "netchannel/poller.hpp"
#include "netchannel/stats.hpp"
#include "netchannel/tcp_socket.hpp"
#include "netchannel/time.hpp"
#include "netchannel/udp_socket.hpp"

namespace netchannel {

enum class Path : std::uint8_t {
  automatic,       // the best that works; Host::explain() says what and why
  kernel,          // kernel sockets, one call a message, as a plain program does
  kernel_batched,  // kernel sockets with recvmmsg, sendmmsg, UDP GSO and GRO
  xdp,             // AF_XDP on an interface: address, routes and neighbours are the kernel's
  bulk,            // super-frames on an interface, beside the kernel as xdp
  tap,             // a TAP device of our own: a bare device, no privileges on the real interface
  local,  // shared memory to other hosts of this machine that are on this path; the kernel to all else
};
std::string_view to_string(Path path);
std::optional<Path> parse_path(std::string_view name);

// How an empty poll waits. The mode stands beside every CPU figure.
enum class WaitMode : std::uint8_t {
  adaptive,  // poll, spin for spin_time, then sleep on the device's descriptor until traffic or the next
             // timer
  spin,      // never sleep: least latency, a whole core
  block,     // sleep at once: least CPU
};
std::string_view to_string(WaitMode mode);
std::optional<WaitMode> parse_wait_mode(std::string_view name);

struct XdpOptions {
  enum class Mode : std::uint8_t { automatic, native, generic };
  enum class Copy : std::uint8_t { automatic, copy, zero_copy };
  Mode mode = Mode::automatic;  // native first, then generic
  Copy copy = Copy::automatic;  // zero-copy first, then copy
  bool busy_poll = false;       // SO_PREFER_BUSY_POLL on the sockets
};

// What `automatic` looks for first: the fewest microseconds, or the most bytes.
enum class Prefer : std::uint8_t { latency, throughput };

struct LocalOptions {
  // Peers are the same user's or root's. Whoever may also be another's can read what this host sends to any
  // of its local peers.
  bool any_user = false;
};

struct HostOptions {
  Path path = Path::automatic;
  Prefer prefer = Prefer::latency;
  std::string device{};  // interface or TAP name; empty: the interface of the default route, "nctap0"
  std::vector<Prefix> addresses{};    // tap only: our own addresses on the bare device
  std::vector<IpAddress> gateways{};  // tap only: default gateways, one a family at most
  WaitMode wait = WaitMode::adaptive;
  Duration spin_time = std::chrono::microseconds(100);  // adaptive: how long to spin before sleeping
  // Slots of 2 KiB at MTU 1500, 16 KiB at 9000; of 128 KiB on bulk, of 64 KiB on local. 0: 8 MiB in each
  // direction, on bulk 512 slots and on local 1024 (the most), of which only what frames have filled takes
  // memory.
  std::uint32_t rx_frames = 0;
  std::uint32_t tx_frames = 0;
  std::uint32_t mtu = 1500;  // tap only
  // A thread that acknowledges, retransmits and answers while this one computes. Channel paths only; costs a
  // lock a call, and a copy a datagram received.
  bool keeper = false;
  XdpOptions xdp{};
  LocalOptions local{};
};

struct HostImpl;

class Host {
 public:
  // Errors, each with what to do about it: no_such_device, device_down, device_busy, not_permitted,
  // memlock_too_small, not_supported, no_memory, invalid_argument.
  static Result<Host> open(HostOptions options);
  Host(Host&&) noexcept;
  Host& operator=(Host&&) noexcept;
  ~Host();  // closes its sockets; unclaims; the kernel has everything again

  // A socket bound to `local` (port 0: the kernel chooses). The port is reserved by a kernel socket, which is
  // also the slow path. Errors: address_in_use, address_not_available, not_permitted (port below 1024),
  // no_memory.
  Result<UdpSocket> udp(const Endpoint& local, UdpOptions options = {});
  // Listens on `local` (port 0: the kernel chooses). Errors: as udp().
  Result<TcpListener> listen(const Endpoint& local, ListenOptions options = {});
  // Connects to `peer`, waiting until options.deadline. Errors: refused, unreachable, timed_out,
  // address_not_available, address_in_use, invalid_argument, no_memory.
  Result<TcpSocket> connect(const Endpoint& peer, ConnectOptions options = {});

  // One turn of the loop: takes what has arrived, runs timers, sends what is due. Never blocks. True if there
  // was work. Waiting calls (receive with a deadline, Poller::wait) do this by themselves.
  bool poll();
  // Waits by the host's wait mode until there may be work or the deadline; poll() afterwards.
  void wait(Instant deadline);
  Instant now() const;

  Poller& poller();

  Path path() const;                // what was chosen
  const std::string& mode() const;  // "native copy", "recvmmsg + GSO", ...
  // Sentences for the user: what was chosen, why, and why not better.
  const std::vector<std::string>& explain() const;
  // A sum over all pages of this host. Reading costs the packet path nothing.
  std::uint64_t counter(Counter counter) const;
  std::uint64_t syscalls() const;  // system calls made on the packet path so far

  HostImpl& impl() { return *impl_; }

 private:
  explicit Host(std::unique_ptr<HostImpl> impl);
  std::unique_ptr<HostImpl> impl_;
};

}  // namespace netchannel
