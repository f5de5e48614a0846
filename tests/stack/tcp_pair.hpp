// Two stacks with a simulated link between them, each behind its driver, in virtual time: what one writes the
// other reads, through every layer but a real device.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "channel/channel.hpp"
#include "device/link.hpp"
#include "driver/driver.hpp"
#include "stack/stack.hpp"
#include "testkit/frames.hpp"

namespace netchannel::stack {

using namespace std::chrono_literals;

struct EndOptions {
  IpAddress v4, v6;
  std::uint32_t slots = 1024;  // receive and as many transmit slots
  std::uint32_t slot_size = 2048;
  StackLimits limits{};
};

class End {
 public:
  explicit End(const EndOptions& wanted) : options(wanted) {}
  // `options` hold from here on.
  device::DeviceHome home() {
    region_ = *FrameRegion::open({.slot_size = options.slot_size, .slot_count = 2 * options.slots + 1});
    return {*region_, counters_};
  }

  void start(Device& device) {
    device_ = &device;
    const std::uint32_t n = options.slots;
    channel_ = *Channel::open({.rx_ring = n, .tx_ring = n, .rx_slots = n, .tx_slots = 2 * n});
    driver_ = std::make_unique<driver::Driver>(device, *region_, driver::SlotRange{0, n}, counters_);
    ASSERT_TRUE(driver_->attach(channel_->take_driver(), {n, n}));
    const DeviceInfo& info = device.info();
    StackOptions wanted;
    wanted.link = {.mac = info.mac,
                   .mtu = info.mtu,
                   .max_tx_frame = info.max_tx_frame,
                   .bare = true,
                   .tx_checksum = info.tx_checksum};
    wanted.rx = {0, n};
    wanted.tx = {n, n};
    wanted.addresses = {{options.v4, 24}, {options.v6, 64}};
    wanted.secret.fill(static_cast<std::uint8_t>(options.v4.v4_value()));
    wanted.limits = options.limits;
    auto opened = Stack::open(channel_->take_consumer(), *region_, wanted);
    ASSERT_TRUE(opened) << opened.error().what;
    stack_ = std::move(*opened);
  }
  bool poll(Instant now) {
    bool moved = driver_->poll();
    moved |= stack_->poll(now).did_something();
    while (driver_->transmit()) moved = true;
    return moved;
  }
  // A frame that the stack knows nothing of, from a slot that is not its own.
  void send_raw(Bytes frame) {
    FrameDesc desc;
    desc.slot = 2 * options.slots;
    desc.length = static_cast<std::uint32_t>(frame.size());
    std::copy(frame.begin(), frame.end(), region_->slot(desc.slot).begin());
    EXPECT_EQ(device_->tx_burst({&desc, 1}), 1u);
  }
  Stack& stack() { return *stack_; }
  Tcp& tcp() { return stack_->tcp(); }
  std::uint64_t count(Counter which) const { return stack_->counters().read(which) + counters_.read(which); }
  std::uint64_t count(DropReason which) const { return count(static_cast<Counter>(which)); }

  EndOptions options;

 private:
  std::unique_ptr<FrameRegion> region_;
  CounterPage counters_;
  Device* device_ = nullptr;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<driver::Driver> driver_;
  std::unique_ptr<Stack> stack_;
};

class TcpPairTest : public ::testing::Test {
 protected:
  device::LinkOptions wire{.a_to_b = {.delay = 50us}, .b_to_a = {.delay = 50us}};
  End a{{.v4 = IpAddress::v4(10, 0, 0, 1), .v6 = *IpAddress::parse("2001:db8::1")}};
  End b{{.v4 = IpAddress::v4(10, 0, 0, 2), .v6 = *IpAddress::parse("2001:db8::2")}};
  Instant now{1'000'000'000};

  void start() {
    auto opened = device::LinkPair::open(wire, a.home(), b.home());
    ASSERT_TRUE(opened) << opened.error().what;
    link_ = std::move(*opened);
    link_->set_time(now);
    a.start(link_->a());
    b.start(link_->b());
    settle();
  }
  device::LinkPair& link() { return *link_; }

  // Polls both until nothing moves at this instant.
  void settle() {
    for (int i = 0; i < 10'000; ++i) {
      const bool moved = a.poll(now);
      if (!b.poll(now) && !moved) return;
    }
    FAIL() << "the stacks do not come to rest";
  }
  void to(Instant at) {
    now = at;
    link_->set_time(now);
    settle();
  }
  // Lets time pass, stopping at everything that happens, until `done` or for `most`. True: done.
  template <class Done>
  bool run_until(Duration most, Done&& done) {
    const Instant end = now + most;
    settle();
    while (!done()) {
      const Instant next =
          earlier(link_->next_event(), earlier(a.stack().next_deadline(), b.stack().next_deadline()));
      if (next > end) {
        to(end);
        return done();
      }
      to(std::max(next, now + 1us));
    }
    return true;
  }
  void run(Duration time) {
    (void)run_until(time, [] { return false; });
  }

  // A connection from a to b's listener, both ends.
  struct Both {
    TcpHandle a, b;
  };
  TcpListenerHandle listen(TcpListen options = {}) {
    if (options.local == Endpoint{}) options.local = {IpAddress::any_v6(), 80};
    const auto listener = b.tcp().listen(options);
    EXPECT_TRUE(listener) << listener.error().what;
    return listener.value_or(TcpListenerHandle{});
  }
  Both connect(TcpListenerHandle listener, TcpConnect options = {}) {
    if (options.peer == Endpoint{}) options.peer = {b.options.v4, 80};
    const auto mine = a.tcp().connect(options);
    EXPECT_TRUE(mine) << mine.error().what;
    if (!mine) return {};
    a.tcp().flush();
    Both both{*mine, {}};
    EXPECT_TRUE(run_until(10s, [&] {
      if (!both.b) both.b = b.tcp().accept(listener).value_or(TcpHandle{});
      return both.b && state(a, both.a) == tcp::State::established;
    }));
    return both;
  }
  static tcp::State state(End& end, TcpHandle handle) {
    const tcp::Connection* c = end.tcp().find(handle);
    return c == nullptr ? tcp::State::closed : c->state.state;
  }
  static std::string read_all(End& end, TcpHandle handle) {
    std::string out;
    std::array<Bytes, 8> views;
    while (const std::size_t n = end.tcp().spans(handle, views)) {
      for (const Bytes view : std::span(views).first(n)) {
        out.append(reinterpret_cast<const char*>(view.data()), view.size());
        end.tcp().consume(handle, view.size());
      }
    }
    end.tcp().flush();
    return out;
  }
  static std::size_t write(End& end, TcpHandle handle, std::string_view text) {
    const std::size_t n = end.tcp().write(handle, std::as_bytes(std::span(text)));
    end.tcp().flush();
    return n;
  }
  // Moves `data` from one end to the other and compares every byte.
  void transfer(End& from, TcpHandle out, End& to, TcpHandle in, std::size_t size) {
    const testkit::Packet data = testkit::pattern(size, 3);
    std::size_t written = 0, read = 0;
    const bool done = run_until(600s, [&] {
      written += from.tcp().write(out, Bytes(data).subspan(written));
      from.tcp().flush();
      const std::string got = read_all(to, in);
      const auto same = std::equal(got.begin(), got.end(), reinterpret_cast<const char*>(data.data()) + read);
      EXPECT_TRUE(same) << "wrong bytes after " << read;
      read += got.size();
      return read >= size || !same;
    });
    EXPECT_TRUE(done) << "stopped after " << read << " of " << size;
    EXPECT_EQ(read, size);
  }

 private:
  std::unique_ptr<device::LinkPair> link_;
};

}  // namespace netchannel::stack
