// The bulk device alone, with a kernel UDP socket at the other end of a veth that uses GSO and GRO, and the
// kernel's own socket in the device's place: what a super-frame of 44 datagrams costs the thread that handles
// it (the CPU column) and how many bits pass (with the far end on the machine's other core). Needs root;
// makes a lab of its own and removes it. With datagrams of "segment" bytes, "segments" of them in a
// super-frame.
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "device/bulk/bulk.hpp"
#include "device/bulk/link_watch.hpp"
#include "lab/lab.hpp"
#include "lab/namespaces.hpp"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace netchannel::device {
namespace {

constexpr const char* kLab = "bulkbench";
constexpr std::uint16_t kOurPort = 7000;
constexpr std::uint16_t kPeerPort = 5000;
constexpr std::uint32_t kSlots = 256;  // half of them for receiving
constexpr std::size_t kHeaders = 42;

// The lab, and this thread in its side a. Gone with the program.
class Bed {
 public:
  Bed() : plan_(kLab) {
    const auto up = lab::up({.name = kLab});
    const auto entered =
        up ? lab::enter(kLab, lab::Side::a) : lab::LabResult<void>(tl::unexpected(up.error()));
    if (!entered) {
      trouble_ = entered.error().text;
      return;
    }
    our_mac_ = LinkWatch::open(lab::kInterface)->facts().mac;
    std::thread([this] {
      if (lab::enter(kLab, lab::Side::b)) peer_mac_ = LinkWatch::open(lab::kInterface)->facts().mac;
    }).join();
  }
  ~Bed() { (void)lab::down(kLab); }
  const std::string& trouble() const { return trouble_; }
  IpAddress ours() const { return plan_.v4(lab::Side::a).address; }
  IpAddress peer() const { return plan_.v4(lab::Side::b).address; }
  const MacAddress& our_mac() const { return our_mac_; }
  const MacAddress& peer_mac() const { return peer_mac_; }

 private:
  lab::Plan plan_;
  std::string trouble_;
  MacAddress our_mac_, peer_mac_;
};

std::unique_ptr<Bed> bed;

sockaddr_in to_sockaddr(const IpAddress& address, std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = htonl(address.v4_value());
  return out;
}

// Bound to its own end, connected to the other; receives as much at once as GRO has put together.
UniqueFd udp_socket(const sockaddr_in& local, const sockaddr_in& peer, int segment) {
  UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int on = 1, room = 8 << 20;
  const timeval patience{.tv_sec = 0, .tv_usec = 100'000};
  (void)::setsockopt(fd.get(), IPPROTO_UDP, UDP_GRO, &on, sizeof on);
  (void)::setsockopt(fd.get(), IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment);
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  (void)::bind(fd.get(), reinterpret_cast<const sockaddr*>(&local), sizeof local);
  (void)::connect(fd.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer);
  return fd;
}

// The kernel's end: a thread in side b that sends or receives until it is destroyed.
class Peer {
 public:
  enum class Does : std::uint8_t { send, receive };
  Peer(Does does, std::size_t segment, std::size_t bytes)
      : thread_([=, this] {
          if (lab::enter(kLab, lab::Side::b)) run(does, segment, bytes);
        }) {}
  ~Peer() {
    stop_ = true;
    thread_.join();
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  std::uint64_t received() const { return received_; }

 private:
  void run(Does does, std::size_t segment, std::size_t bytes) {
    const UniqueFd fd = udp_socket(to_sockaddr(bed->peer(), kPeerPort), to_sockaddr(bed->ours(), kOurPort),
                                   static_cast<int>(segment));
    std::vector<std::byte> buffer(does == Does::send ? bytes : 65'536);
    while (!stop_) {
      const ssize_t n = does == Does::send ? ::send(fd.get(), buffer.data(), buffer.size(), 0)
                                           : ::recv(fd.get(), buffer.data(), buffer.size(), 0);
      if (does == Does::receive && n > 0) received_ += static_cast<std::uint64_t>(n);
    }
  }
  std::atomic<bool> stop_ = false;
  std::atomic<std::uint64_t> received_ = 0;
  std::thread thread_;
};

// The device with its memory; slots 0 to 127 receive, the others send.
struct Opened {
  std::unique_ptr<FrameRegion> region;
  std::unique_ptr<CounterPage> counters = std::make_unique<CounterPage>();
  std::unique_ptr<BulkDevice> device;
  Opened() {
    region = std::move(*FrameRegion::open({.slot_size = BulkDevice::kSlotSize, .slot_count = kSlots}));
    auto opened = BulkDevice::open({.interface = lab::kInterface}, {*region, *counters});
    if (!opened) return;
    device = std::move(*opened);
    std::vector<std::uint32_t> lent(kSlots / 2);
    std::iota(lent.begin(), lent.end(), 0U);
    device->refill(lent);
    (void)device->claim({Protocol::udp, {bed->ours(), kOurPort}, {}});
  }
};

std::uint16_t folded(std::uint64_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

// Headers for a super-frame to the peer, its UDP checksum left to be done.
void write_headers(MutableBytes out, std::size_t bytes) {
  const auto put = [&](std::size_t at, std::span<const std::uint8_t> what) {
    const Bytes from = std::as_bytes(what);
    std::copy(from.begin(), from.end(), out.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(0, bed->peer_mac().bytes);
  put(6, bed->our_mac().bytes);
  store_be16(out, 12, 0x0800);
  store_be16(out, 14, 0x4500);
  store_be16(out, 16, static_cast<std::uint16_t>(28 + bytes));
  store_be32(out, 18, 0x00004000);  // DF
  store_be16(out, 22, 64 << 8 | IPPROTO_UDP);
  store_be16(out, 24, 0);
  store_be32(out, 26, bed->ours().v4_value());
  store_be32(out, 30, bed->peer().v4_value());
  store_be16(out, 34, kOurPort);
  store_be16(out, 36, kPeerPort);
  store_be16(out, 38, static_cast<std::uint16_t>(8 + bytes));
  std::uint64_t header = 0, pseudo = IPPROTO_UDP + 8 + bytes;
  for (std::size_t at = 14; at < 34; at += 2) header += load_be16(out, at);
  for (std::size_t at = 26; at < 34; at += 2) pseudo += load_be16(out, at);
  store_be16(out, 24, static_cast<std::uint16_t>(~folded(header)));
  store_be16(out, 40, folded(pseudo));
}

void report(benchmark::State& state, std::uint64_t bytes) {
  state.counters["Gbit/s"] =
      benchmark::Counter(static_cast<double>(bytes) * 8e-9, benchmark::Counter::kIsRate);
}

void device_receive(benchmark::State& state) {
  const auto segment = static_cast<std::size_t>(state.range(0)),
             segments = static_cast<std::size_t>(state.range(1));
  Opened opened;
  if (!opened.device) return state.SkipWithError("the device does not open");
  const Peer peer(Peer::Does::send, segment, segment * segments);
  std::array<FrameDesc, kBurst> frames;
  std::array<std::uint32_t, kBurst> home;
  std::uint64_t bytes = 0, got = 0;
  for (auto _ : state) {
    std::size_t n = 0;
    while ((n = opened.device->rx_burst(frames)) == 0) {
      pollfd ready{opened.device->info().sleep_fd, POLLIN, 0};
      ::poll(&ready, 1, 100);
    }
    for (std::size_t i = 0; i < n; ++i) bytes += frames[i].length - kHeaders, home[i] = frames[i].slot;
    got += n;
    opened.device->refill(std::span(home).first(n));
  }
  report(state, bytes);
  state.SetItemsProcessed(static_cast<std::int64_t>(got));
  state.counters["frames/burst"] = static_cast<double>(got) / static_cast<double>(state.iterations());
}

void device_send(benchmark::State& state) {
  const auto segment = static_cast<std::size_t>(state.range(0)),
             segments = static_cast<std::size_t>(state.range(1));
  const auto burst = static_cast<std::size_t>(state.range(2));
  Opened opened;
  if (!opened.device) return state.SkipWithError("the device does not open");
  const Peer peer(Peer::Does::receive, segment, 0);
  std::vector<FrameDesc> frames;
  for (std::uint32_t slot = kSlots / 2; frames.size() < burst; ++slot) {
    frames.push_back({.slot = slot,
                      .length = static_cast<std::uint32_t>(kHeaders + segment * segments),
                      .offset = 64,
                      .segment_size = static_cast<std::uint16_t>(segments > 1 ? segment : 0),
                      .flags = kChecksumPartial,
                      .l4_offset = 34});
    write_headers(opened.region->bytes_of(frames.back()), segment * segments);
  }
  std::array<FrameDesc, kBurst> home;
  std::uint64_t sent = 0;
  for (auto _ : state) {
    sent += opened.device->tx_burst(frames);
    while (opened.device->reclaim(home) == home.size()) {
    }
  }
  report(state, peer.received());
  state.SetItemsProcessed(static_cast<std::int64_t>(sent));
  state.counters["arrived"] =
      static_cast<double>(peer.received()) / static_cast<double>(sent * segment * segments);
}

void kernel_receive(benchmark::State& state) {
  const auto segment = static_cast<std::size_t>(state.range(0)),
             segments = static_cast<std::size_t>(state.range(1));
  const UniqueFd fd = udp_socket(to_sockaddr(bed->ours(), kOurPort), to_sockaddr(bed->peer(), kPeerPort), 0);
  const Peer peer(Peer::Does::send, segment, segment * segments);
  std::vector<std::byte> buffer(65'536);
  std::uint64_t bytes = 0;
  for (auto _ : state) {
    const ssize_t n = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (n > 0) bytes += static_cast<std::uint64_t>(n);
  }
  report(state, bytes);
  state.SetItemsProcessed(state.iterations());
}

void kernel_send(benchmark::State& state) {
  const auto segment = static_cast<std::size_t>(state.range(0)),
             segments = static_cast<std::size_t>(state.range(1));
  const UniqueFd fd = udp_socket(to_sockaddr(bed->ours(), kOurPort), to_sockaddr(bed->peer(), kPeerPort),
                                 static_cast<int>(segment));
  const Peer peer(Peer::Does::receive, segment, 0);
  const std::vector<std::byte> buffer(segment * segments);
  for (auto _ : state) benchmark::DoNotOptimize(::send(fd.get(), buffer.data(), buffer.size(), 0));
  report(state, peer.received());
  state.SetItemsProcessed(state.iterations());
  state.counters["arrived"] =
      static_cast<double>(peer.received()) / static_cast<double>(state.iterations() * segment * segments);
}

void sizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"segment", "segments"})->Args({1400, 44})->Args({1400, 1})->Args({100, 1})->UseRealTime();
}

BENCHMARK(device_receive)->Apply(sizes);
BENCHMARK(kernel_receive)->Apply(sizes);
BENCHMARK(device_send)
    ->ArgNames({"segment", "segments", "burst"})
    ->Args({1400, 44, 1})
    ->Args({1400, 44, 16})
    ->Args({1400, 1, 32})
    ->Args({100, 1, 32})
    ->UseRealTime();
BENCHMARK(kernel_send)->Apply(sizes);

}  // namespace
}  // namespace netchannel::device

int main(int argc, char** argv) {
  using netchannel::device::bed;
  benchmark::Initialize(&argc, argv);
  bed = std::make_unique<netchannel::device::Bed>();
  if (!bed->trouble().empty()) {
    std::fprintf(stderr, "bench_bulk: %s\n", bed->trouble().c_str());
    bed.reset();
    return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
  bed.reset();
  return 0;
}
