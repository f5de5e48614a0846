#include "testkit/wan.hpp"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "device/clock.hpp"
#include "testkit/port.hpp"

namespace netchannel::testkit {
namespace {

// Frames of one side in one turn, so that neither side waits long for the other.
constexpr int kTurn = 64;
constexpr Duration kLongest = std::chrono::milliseconds(100);

std::uint32_t slot_size_for(std::uint32_t mtu) {
  std::uint32_t size = 2048;
  while (size < mtu + 256) size *= 2;
  return size;
}

PortOptions port_options(std::uint32_t mtu) {
  return {.slot_size = slot_size_for(mtu), .rx_slots = 128, .tx_slots = 128};
}

timespec timespec_of(Duration d) { return {d.count() / 1'000'000'000, d.count() % 1'000'000'000}; }

}  // namespace

UniqueFd packet_port(const std::string& interface) {
  UniqueFd fd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return {};
  const int on = 1, buffer = 32 << 20;
  // What is sent here must not be seen here, or it would go back.
  if (::setsockopt(fd.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0 ||
      ::setsockopt(fd.get(), SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on) != 0 ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) != 0 ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer) != 0)
    return {};
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
  if (address.sll_ifindex == 0) return {};
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
  return fd;
}

struct Wan::Carrier {
  struct Side {
    Side(UniqueFd socket, std::uint32_t mtu)
        : fd(std::move(socket)), port(port_options(mtu)), largest(mtu + ETH_HLEN), buffer(1 << 17) {}
    UniqueFd fd;
    Port port;
    std::size_t largest;
    std::vector<std::byte> buffer;
    std::uint64_t missed = 0, too_large = 0;

    // Frames that wait at the interface go on to the path; true if there were any.
    bool take() {
      int n = 0;
      for (; n < kTurn; ++n) {
        const ssize_t size = ::recv(fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (size < 0) break;
        const Bytes frame = Bytes(buffer).first(static_cast<std::size_t>(size));
        if (frame.size() > largest) {
          ++too_large;
        } else {
          port.send(frame);
        }
      }
      return n != 0;
    }
    // An interface that cannot take a frame now loses it, as a NIC does.
    void give() {
      for (const Packet& frame : port.receive())
        (void)::send(fd.get(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    std::uint64_t count_missed() {
      tpacket_stats now{};
      socklen_t size = sizeof now;
      if (::getsockopt(fd.get(), SOL_PACKET, PACKET_STATISTICS, &now, &size) == 0) missed += now.tp_drops;
      return missed;
    }
  };

  Carrier(UniqueFd left_fd, UniqueFd right_fd, const device::LinkOptions& path)
      : left(std::move(left_fd), path.mtu), right(std::move(right_fd), path.mtu) {
    auto opened = device::LinkPair::open(path, left.port.home(), right.port.home());
    if (!opened) {
      std::fprintf(stderr, "testkit: %s\n", describe(opened.error()).c_str());
      std::abort();
    }
    link = std::move(*opened);
    left.port.attach(link->a());
    right.port.attach(link->b());
    link->set_time(device::monotonic_now());
  }

  bool turn() {
    link->set_time(device::monotonic_now());
    const bool from_left = left.take(), from_right = right.take();
    right.give();
    left.give();
    return from_left || from_right;
  }

  Side left, right;
  std::unique_ptr<device::LinkPair> link;  // before its ends' homes
};

Wan::Wan(UniqueFd left, UniqueFd right, const device::LinkOptions& path)
    : carrier_(std::make_unique<Carrier>(std::move(left), std::move(right), path)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

Wan::~Wan() {
  stop_ = true;
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
  thread_.join();
}

void Wan::run() {
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  std::array<pollfd, 3> ready{{{carrier_->left.fd.get(), POLLIN, 0},
                               {carrier_->right.fd.get(), POLLIN, 0},
                               {wake_.get(), POLLIN, 0}}};
  while (!stop_) {
    Duration rest = kLongest;
    {
      const std::lock_guard lock(mutex_);
      if (carrier_->turn()) continue;
      const Instant next = carrier_->link->next_event();
      if (next != kForever) rest = std::clamp(next - device::monotonic_now(), Duration{0}, kLongest);
    }
    const timespec time = timespec_of(rest);
    ::ppoll(ready.data(), ready.size(), &time, nullptr);
  }
}

WanStats Wan::stats() {
  const std::lock_guard lock(mutex_);
  Carrier& c = *carrier_;
  return {c.link->a_to_b(), c.link->b_to_a(), c.left.too_large + c.right.too_large,
          c.left.count_missed() + c.right.count_missed()};
}

void Wan::change(const device::LinkDirection& to_right, const device::LinkDirection& to_left) {
  const std::lock_guard lock(mutex_);
  if (auto done = carrier_->link->change(to_right, to_left); !done) {
    std::fprintf(stderr, "testkit: %s\n", describe(done.error()).c_str());
    std::abort();
  }
}

}  // namespace netchannel::testkit
