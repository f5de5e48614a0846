// What the tests of kernel sockets share. The whole program stands in a network namespace of its own, made
// before the first test, so that its ports, routes and devices are nobody else's.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/clock.hpp"
#include "kernel/udp_socket.hpp"

namespace netchannel::kernel {

// Empty if we have the namespace; else why not.
const std::string& why_no_namespace();

#define NEEDS_NAMESPACE() \
  if (!why_no_namespace().empty()) GTEST_SKIP() << "SKIPPED: " << why_no_namespace()

// Runs a command in the namespace; true if it succeeded.
bool shell(const std::string& command);

inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string text_of(Bytes bytes) {
  std::string text(bytes.size(), '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) text[i] = std::to_integer<char>(bytes[i]);
  return text;
}
inline Endpoint at(const char* text) { return *Endpoint::parse(text); }

// Far enough that only a datagram that never comes meets it.
inline Instant soon() { return monotonic_now() + std::chrono::seconds(5); }

struct Rig {
  explicit Rig(std::uint32_t slot_size = 65536, std::uint32_t slots = 512)
      : region(*FrameRegion::open({.slot_size = slot_size, .slot_count = slots})),
        pool(*region, 0, slots, FramePool::Start::all_free) {}

  UdpSocket open(const Endpoint& local, const UdpKernelOptions& options = {}) {
    auto socket = UdpSocket::open(local, options, pool, counters);
    if (!socket) ADD_FAILURE() << describe(socket.error());
    return std::move(*socket);
  }
  std::uint64_t count(Counter counter) const { return counters.read(counter); }

  std::unique_ptr<FrameRegion> region;
  FramePool pool;
  CounterPage counters;
};

// Each test of it runs over a plain and over a batched socket.
class BothWays : public ::testing::TestWithParam<bool> {
 protected:
  UdpKernelOptions options() const { return {.batched = GetParam()}; }
  UdpSocket open(const Endpoint& local) { return rig.open(local, options()); }
  Rig rig;
};

// Exactly one, or a failure.
inline Datagram receive_one(UdpSocket& socket) {
  std::array<Datagram, 1> out;
  auto got = socket.receive_blocking(out, 1, soon());
  if (!got) ADD_FAILURE() << describe(got.error());
  if (got && *got != 1) ADD_FAILURE() << "no datagram came";
  return std::move(out[0]);
}

// `n` of them, with as few calls as the socket needs.
inline std::vector<Datagram> receive_many(UdpSocket& socket, std::size_t n) {
  std::vector<Datagram> out(n);
  auto got = socket.receive_blocking(out, n, soon());
  if (!got) ADD_FAILURE() << describe(got.error());
  out.resize(got ? *got : 0);
  EXPECT_EQ(out.size(), n);
  return out;
}

inline SendStatus send_one(UdpSocket& socket, Bytes payload, const Endpoint& peer = {}) {
  const OutDatagram datagram{payload, peer, false};
  SendStatus status{};
  socket.send(std::span(&datagram, 1), std::span(&status, 1));
  return status;
}

inline std::vector<SendStatus> send_all(UdpSocket& socket, const std::vector<OutDatagram>& in) {
  std::vector<SendStatus> statuses(in.size());
  EXPECT_EQ(socket.send(in, statuses), in.size());
  return statuses;
}

inline std::vector<SendStatus> all_queued(std::size_t n) {
  return std::vector<SendStatus>(n, SendStatus::queued);
}

}  // namespace netchannel::kernel
