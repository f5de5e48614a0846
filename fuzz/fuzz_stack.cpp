// A whole stack under a sequence of frames, sends, reads and time steps, with checksums off so that the
// fuzzer gets past them. Whatever comes, nothing is read or written outside, every call ends, what the stack
// sends is well formed, and in the end every slot is home.
//
// Input: one byte of settings (bare or steered, virtual link, MTU), then records: a kind, a length, that many
// bytes. A frame's addresses are put right unless its kind says not to, or nearly every frame would be for
// somebody else.
#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "channel/channel.hpp"
#include "fuzz/fuzz_wire.hpp"
#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/packet.hpp"
#include "stack/stack.hpp"

using namespace netchannel;

namespace {

constexpr std::uint32_t kSlots = 32;
const MacAddress kOurMac{{2, 0, 0, 0, 0, 1}}, kPeerMac{{2, 0, 0, 0, 0, 2}};
const IpAddress kOur4 = IpAddress::v4(10, 0, 0, 1), kPeer4 = IpAddress::v4(10, 0, 0, 2);
const IpAddress kOur6 = IpAddress::v6({0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
const IpAddress kPeer6 = IpAddress::v6({0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});

// Reads the input; out of input it reads zeros.
struct Input {
  const std::uint8_t* data;
  std::size_t left;
  std::uint8_t byte() {
    if (left == 0) return 0;
    --left;
    return *data++;
  }
  Bytes bytes(std::size_t n) {
    n = std::min(n, left);
    const Bytes out = std::as_bytes(std::span(data, n));
    data += n;
    left -= n;
    return out;
  }
};

class Scene {
 public:
  explicit Scene(std::uint8_t settings) {
    region_ = *FrameRegion::open({.slot_size = 2048, .slot_count = 2 * kSlots});
    channel_ = *Channel::open({.rx_ring = 64, .tx_ring = 64, .rx_slots = kSlots, .tx_slots = kSlots});
    driver_ = channel_->take_driver();
    stack::StackOptions options;
    options.link.mac = kOurMac;
    options.link.bare = (settings & 1) != 0;
    options.link.virtual_link = (settings & 2) != 0;
    options.link.mtu = (settings & 4) != 0 ? 4000 : 1500;
    options.rx = {0, kSlots};
    options.tx = {kSlots, kSlots};
    options.addresses = {{kOur4, 24}, {kOur6, 64}};
    if (!options.link.bare) options.routes = {{.destination = {kOur4, 24}}, {.destination = {kOur6, 64}}};
    options.limits = {.udp_sockets = 8,
                      .large_slots = 4,
                      .reassemblies = 3,
                      .reassemblies_of_source = 2,
                      .neighbours = 4,
                      .waiting_frames = 8,
                      .waiting_of_neighbour = 6,
                      .narrow_paths = 8};
    options.verify_checksums = false;
    stack_ = *stack::Stack::open(channel_->take_consumer(), *region_, options);
    for (std::uint32_t i = 0; i < kSlots; ++i) lent_.push_back(i);
    stack::UdpBind bind;
    bind.local = {IpAddress::any_v6(), 7};
    bind.reuse_address = true;
    sockets_[0] = *stack_->open_udp(bind);
    bind.local = {kOur4, 7};
    bind.peer = {kPeer4, 9};
    sockets_[1] = *stack_->open_udp(bind);
    bind.local = {kOur6, 7};
    bind.peer = {kPeer6, 9};
    bind.all_errors = true;
    sockets_[2] = *stack_->open_udp(bind);
  }

  void arrive(std::vector<std::byte> frame, bool put_right, std::size_t part) {
    if (put_right) address(frame);
    part = part == 0 ? 2048 : part;
    for (std::size_t at = 0; at == 0 || at < frame.size(); at += part) {
      if (lent_.empty()) return poll();
      const Bytes bytes = Bytes(frame).subspan(at, std::min(part, frame.size() - at));
      FrameDesc desc;
      desc.slot = lent_.front();
      desc.length = static_cast<std::uint32_t>(bytes.size());
      desc.flags = at + part < frame.size() ? kContinues : 0;
      desc.segment_size = segment_size;
      lent_.pop_front();
      std::copy(bytes.begin(), bytes.end(), region_->slot(desc.slot).begin());
      driver_.rx.push(desc);
    }
    poll();
  }
  void send(std::size_t socket, std::size_t size, bool v6) {
    static const std::vector<std::byte> payload(65535, std::byte{0x55});
    const Endpoint peers[] = {{},
                              {v6 ? kPeer6 : kPeer4, 9},
                              {v6 ? IpAddress::v6({0xfd, 0, 0, 0, 0, 0, 0, 0, 9})
                                  : IpAddress::v4(10, 0, 0, static_cast<std::uint8_t>(size)),
                               9}};
    const OutDatagram out[] = {{Bytes(payload).first(size), peers[size % 3], false},
                               {{}, peers[(size + 1) % 3], true}};
    std::array<SendStatus, 2> told{};
    stack_->send(sockets_[socket % 3], out, told);
    transmit();
  }
  void read(std::size_t socket) {
    std::array<Datagram, 3> got;
    const std::size_t n = stack_->receive(sockets_[socket % 3], got);
    for (std::size_t i = 0; i < n; ++i) fuzz::require_inside(got[i].payload, got[i].payload);
    stack_->take_error(sockets_[socket % 3]);
    if (n != 0) kept_ = std::move(got[0]);
  }
  void wait(Duration by) {
    now_ = now_ + by;
    poll();
  }
  void neighbour(std::uint8_t how) {
    const IpAddress address = (how & 1) != 0 ? kPeer4 : kPeer6;
    stack_->on_neighbour(address, (how & 2) != 0 ? std::optional(kPeerMac) : std::nullopt);
    transmit();
  }
  void inject(Bytes payload) { stack_->inject_slow_path(payload, {kPeer4, 9}, {kOur4, 7}); }

  // Everything is read and released: all slots must come home, and no timer runs for ever.
  void finish() {
    kept_ = {};
    for (std::size_t i = 0; i < 3; ++i) {
      std::array<Datagram, 4> got;
      while (stack_->receive(sockets_[i], got) != 0) {
      }
    }
    // A packet whose last part never came.
    std::vector<std::byte> end(14);
    arrive(end, false, 0);
    for (int i = 0; i < 1000 && stack_->next_deadline() != kForever; ++i) {
      now_ = std::max(now_, stack_->next_deadline());
      poll();
    }
    fuzz::require(stack_->next_deadline() == kForever);
    for (std::size_t i = 0; i < 3; ++i) stack_->close_udp(sockets_[i]);
    poll();
    poll();
    fuzz::require(lent_.size() == kSlots);
  }

  std::uint16_t segment_size = 0;

 private:
  static void address(std::vector<std::byte>& frame) {
    const MutableBytes out(frame);
    if (out.size() < 14) return;
    wire::store_mac(out, 0, kOurMac);
    wire::store_mac(out, 6, kPeerMac);
    const std::uint16_t type = load_be16(out, 12);
    if (type == 0x0800 && out.size() >= 34) {
      store_be32(out, 26, kPeer4.v4_value());
      store_be32(out, 30, kOur4.v4_value());
    } else if (type == 0x86dd && out.size() >= 54) {
      wire::store_ipv6_address(out, 22, kPeer6);
      wire::store_ipv6_address(out, 38, kOur6);
    }
  }
  void poll() {
    stack_->poll(now_);
    transmit();
    std::uint32_t slot = 0;
    while (driver_.recycle.pop_all({&slot, 1}) == 1) lent_.push_back(slot);
    std::array<IpAddress, 2> wanted;
    stack_->take_resolve_requests(wanted);
  }
  void transmit() {
    std::vector<std::byte> frame;
    while (driver_.tx.peek(1) != 0) {
      const FrameDesc desc = driver_.tx.read(0);
      driver_.tx.release(1);
      fuzz::require(region_->holds(desc) && desc.slot >= kSlots && desc.length != 0);
      const Bytes bytes = region_->bytes_of(desc);
      frame.insert(frame.end(), bytes.begin(), bytes.end());
      driver_.reclaimed.push(desc.slot);
      if ((desc.flags & kContinues) != 0) continue;
      check_sent(frame);
      frame.clear();
    }
    fuzz::require(frame.empty());
  }
  void check_sent(Bytes frame) {
    fuzz::require(frame.size() >= 42 && frame.size() <= stack_->link().mtu + 14u);
    const std::uint16_t type = load_be16(frame, 12);
    if (type == 0x0806) return;
    const auto packet = wire::parse_ip(frame.subspan(14));
    fuzz::require(packet.has_value());
    fuzz::require(wire::verify_header_checksum(*packet));
  }

  std::unique_ptr<FrameRegion> region_;
  std::unique_ptr<Channel> channel_;
  DriverEnd driver_;
  std::unique_ptr<stack::Stack> stack_;
  std::array<stack::UdpHandle, 3> sockets_;
  std::deque<std::uint32_t> lent_;
  Datagram kept_;
  Instant now_{1'000'000'000};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input{data, size};
  Scene scene(input.byte());
  while (input.left != 0) {
    const std::uint8_t kind = input.byte(), value = input.byte();
    switch (kind & 7) {
      case 0:
      case 1:
      case 2: {
        const Bytes bytes = input.bytes(value * ((kind & 8) != 0 ? 8u : 1u));
        scene.segment_size = (kind & 64) != 0 ? value : 0;
        scene.arrive({bytes.begin(), bytes.end()}, (kind & 16) == 0, (kind & 32) != 0 ? value / 4u : 0);
        break;
      }
      case 3:
        scene.send(kind >> 4, value * ((kind & 8) != 0 ? 257u : 8u), (value & 1) != 0);
        break;
      case 4:
        scene.read(value);
        break;
      case 5:
        scene.wait(std::chrono::milliseconds(value * value));
        break;
      case 6:
        scene.neighbour(value);
        break;
      default:
        scene.inject(input.bytes(value));
        break;
    }
  }
  scene.finish();
  return 0;
}
