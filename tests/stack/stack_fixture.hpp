// A stack with a test in the driver's place: the test lends the receive slots, writes frames into them, and
// sees what the stack puts on its ring. Time moves only when the test says so.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "channel/channel.hpp"
#include "netchannel/frame.hpp"
#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/packet.hpp"
#include "netchannel/wire/udp.hpp"
#include "stack/stack.hpp"
#include "testkit/frames.hpp"
#include "testkit/gtest.hpp"

namespace netchannel::stack {

using testkit::Packet;
using namespace std::chrono_literals;

inline const MacAddress kOurMac{{0x02, 0, 0, 0, 0, 0x0a}};
inline const MacAddress kPeerMac{{0x02, 0, 0, 0, 0, 0x0b}};
inline const IpAddress kOur4 = IpAddress::v4(10, 0, 0, 1);
inline const IpAddress kPeer4 = IpAddress::v4(10, 0, 0, 2);
inline const IpAddress kOur6 = *IpAddress::parse("2001:db8::1");
inline const IpAddress kPeer6 = *IpAddress::parse("2001:db8::2");

// Settings a test may change before start().
struct Settings {
  StackOptions options;
  std::uint32_t slots = 64;  // receive and as many transmit slots
  std::uint32_t slot_size = 2048;
  std::uint32_t ring = 256;
  Settings() {
    options.link.mac = kOurMac;
    options.link.bare = true;
    options.addresses = {{kOur4, 24}, {kOur6, 64}};
    for (std::size_t i = 0; i < options.secret.size(); ++i)
      options.secret[i] = static_cast<std::uint8_t>(7 * i + 1);
  }
};

class StackTest : public testkit::TranscriptTest {
 protected:
  Settings settings;
  Instant now{1'000'000'000};

  void start() {
    stack_.reset();
    lent_.clear();
    region_ = *FrameRegion::open({.slot_size = settings.slot_size, .slot_count = 2 * settings.slots});
    channel_ = *Channel::open({.rx_ring = settings.ring,
                               .tx_ring = settings.ring,
                               .rx_slots = settings.slots,
                               .tx_slots = settings.slots});
    driver_ = channel_->take_driver();
    settings.options.rx = {0, settings.slots};
    settings.options.tx = {settings.slots, settings.slots};
    auto opened = Stack::open(channel_->take_consumer(), *region_, settings.options);
    ASSERT_TRUE(opened) << opened.error().what;
    stack_ = std::move(*opened);
    for (std::uint32_t i = 0; i < settings.slots; ++i) lent_.push_back(i);
    poll();
  }
  Stack& stack() { return *stack_; }

  void poll() {
    stack_->poll(now);
    take_home();
  }
  void advance(Duration by) {
    now = now + by;
    poll();
  }
  // Polls at every deadline until `by` has passed.
  void run(Duration by) {
    const Instant end = now + by;
    while (stack_->next_deadline() <= end) {
      now = std::max(now, stack_->next_deadline());
      poll();
    }
    now = end;
    poll();
  }

  // A frame comes from the wire. False: every receive slot is out.
  struct Marks {
    std::uint16_t flags = 0;
    std::uint16_t segment_size = 0;
    std::size_t part = 0;  // bytes in a slot; 0: all in one
  };
  bool arrive_only(Bytes frame, const Marks& marks) {
    const std::size_t step = marks.part != 0 ? marks.part : std::max<std::size_t>(frame.size(), 1);
    for (std::size_t at = 0; at == 0 || at < frame.size(); at += step) {
      if (lent_.empty()) return false;
      FrameDesc desc;
      desc.slot = lent_.front();
      lent_.pop_front();
      const Bytes bytes = frame.subspan(at, std::min(step, frame.size() - at));
      std::copy(bytes.begin(), bytes.end(), region_->slot(desc.slot).begin());
      desc.length = static_cast<std::uint32_t>(bytes.size());
      desc.flags = static_cast<std::uint16_t>(marks.flags | (at + step < frame.size() ? kContinues : 0));
      desc.segment_size = marks.segment_size;
      if (!driver_.rx.push(desc)) return false;
    }
    transcript.packet(now, "peer -> stack", frame);
    return true;
  }
  bool arrive(Bytes frame) { return arrive_only(frame, {}) && (poll(), true); }
  bool arrive(Bytes frame, const Marks& marks) { return arrive_only(frame, marks) && (poll(), true); }

  // The frames that the stack has sent since the last call, parts put together; their slots go home.
  std::vector<Packet> sent() {
    std::vector<Packet> frames;
    bool continues = false;
    while (driver_.tx.peek(1) != 0) {
      const FrameDesc desc = driver_.tx.read(0);
      driver_.tx.release(1);
      EXPECT_TRUE(region_->holds(desc));
      EXPECT_GE(desc.slot, settings.slots);
      if (!continues) frames.emplace_back();
      const MutableBytes bytes = region_->bytes_of(desc);
      EXPECT_FALSE(bytes.empty());
      frames.back().insert(frames.back().end(), bytes.begin(), bytes.end());
      continues = (desc.flags & kContinues) != 0;
      last_sent_ = desc;
      EXPECT_TRUE(driver_.reclaimed.push(desc.slot));
    }
    EXPECT_FALSE(continues) << "the last packet has no end";
    for (const Packet& frame : frames) transcript.packet(now, "stack -> peer", frame);
    return frames;
  }
  std::optional<Packet> sent_one() {
    auto frames = sent();
    EXPECT_EQ(frames.size(), 1u);
    if (frames.size() != 1) return std::nullopt;
    return frames.front();
  }

  std::uint64_t count(Counter counter) const { return stack_->counters().read(counter); }
  std::uint64_t count(DropReason reason) const { return stack_->counters().read(reason); }
  std::size_t lent() const { return lent_.size(); }
  DriverEnd& driver() { return driver_; }
  FrameRegion& region() { return *region_; }
  const FrameDesc& last_sent() const { return last_sent_; }

  UdpHandle open(const Endpoint& local, UdpBind bind = {}) {
    bind.local = local;
    const auto socket = stack_->open_udp(bind);
    EXPECT_TRUE(socket) << socket.error().what;
    return socket.value_or(UdpHandle{});
  }
  std::optional<Datagram> receive_one(UdpHandle socket) {
    Datagram datagram;
    if (stack_->receive(socket, {&datagram, 1}) == 0) return std::nullopt;
    return datagram;
  }
  SendStatus send_one(UdpHandle socket, Bytes payload, const Endpoint& peer = {}) {
    const OutDatagram out{payload, peer, false};
    SendStatus status = SendStatus::failed;
    stack_->send(socket, {&out, 1}, {&status, 1});
    return status;
  }
  // A device with a kernel behind it, which has told its routes and the peer's MAC.
  void start_steered() {
    settings.options.link.bare = false;
    settings.options.routes = {{.destination = {kOur4, 24}}, {.destination = {kOur6, 64}}};
    start();
    know_peers();
  }
  // Makes the peer's MAC known, as the mirror of the kernel's table would.
  void know_peers() {
    stack_->on_neighbour(kPeer4, kPeerMac);
    stack_->on_neighbour(kPeer6, kPeerMac);
  }
  static Packet udp_from_peer(const Endpoint& from, const Endpoint& to, Bytes payload) {
    return testkit::udp_frame({kOurMac, kPeerMac}, from, to, payload);
  }
  static Packet to_us(Bytes ip_packet) {
    const bool v6 = load_u8(ip_packet, 0) >> 4 == 6;
    return testkit::ethernet({kOurMac, kPeerMac}, v6 ? testkit::kIpv6 : testkit::kIpv4, ip_packet);
  }
  static Bytes l3_of(const Packet& frame) { return Bytes(frame).subspan(14); }

 private:
  void take_home() {
    std::uint32_t slot = 0;
    while (driver_.recycle.pop_all({&slot, 1}) == 1) lent_.push_back(slot);
  }

  std::unique_ptr<FrameRegion> region_;
  std::unique_ptr<Channel> channel_;
  DriverEnd driver_;
  std::unique_ptr<Stack> stack_;
  std::deque<std::uint32_t> lent_;
  FrameDesc last_sent_;
};

inline std::string text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace netchannel::stack
