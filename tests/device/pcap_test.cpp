#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "device/link.hpp"
#include "device/pcap_file.hpp"
#include "device/wrap_capture.hpp"
#include "testkit/clock.hpp"
#include "testkit/port.hpp"

namespace netchannel::device {
namespace {

using namespace std::chrono_literals;
using testkit::Packet;
using testkit::pattern;
using testkit::Port;
using testkit::VirtualClock;

constexpr Instant at(Duration since_start) { return Instant{since_start.count()}; }

class Pcap : public ::testing::Test {
 protected:
  void TearDown() override { std::remove(path.c_str()); }
  std::string path = ::testing::TempDir() + "netchannel-" + std::to_string(::getpid()) + "-" +
                     ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".pcap";

  void write_file(const std::vector<std::pair<Instant, Packet>>& packets) const {
    auto writer = PcapWriter::open(path);
    ASSERT_TRUE(writer);
    for (const auto& [when, packet] : packets) writer->write(when, packet);
    ASSERT_TRUE(writer->flush());
  }
  std::vector<std::pair<Instant, Packet>> read_file() const {
    auto reader = PcapReader::open(path);
    std::vector<std::pair<Instant, Packet>> out;
    if (!reader) {
      ADD_FAILURE() << describe(reader.error());
      return out;
    }
    while (const auto got = reader->next())
      out.emplace_back(got->when, Packet(got->bytes.begin(), got->bytes.end()));
    EXPECT_FALSE(reader->damaged());
    return out;
  }
  void write_bytes(const std::vector<std::uint32_t>& words, std::string_view tail = {}) const {
    std::ofstream file(path, std::ios::binary);
    for (const std::uint32_t word : words) file.write(reinterpret_cast<const char*>(&word), 4);
    file << tail;
  }
  PcapFileOptions options() {
    return {.replay = path, .clock = [this] { return clock.now(); }};
  }
  VirtualClock clock{at(100s)};
  Port port;
};

// Classic pcap, nanoseconds, Ethernet, in this machine's byte order.
const std::vector<std::uint32_t> kHeader{0xa1b23c4d, 0x00040002, 0, 0, 65535, 1};
std::vector<std::uint32_t> with_header(std::initializer_list<std::uint32_t> more) {
  auto out = kHeader;
  out.insert(out.end(), more);
  return out;
}

TEST_F(Pcap, WhatIsWrittenIsReadToTheNanosecond) {
  const std::vector<std::pair<Instant, Packet>> packets = {
      {at(0ns), pattern(60, 1)}, {at(1'234'567'891ns), pattern(1514, 2)}, {at(1'234'567'892ns), {}}};
  write_file(packets);
  EXPECT_EQ(read_file(), packets);
}

TEST_F(Pcap, ReplaysEachPacketWhenItsTimeHasCome) {
  write_file({{at(5s), pattern(60, 1)}, {at(5s + 3ms), pattern(60, 2)}, {at(5s + 3ms), pattern(60, 3)}});
  auto device = PcapFileDevice::open(options(), port.home());
  ASSERT_TRUE(device);
  port.attach(**device);
  EXPECT_EQ((*device)->next_event(), at(100s));
  EXPECT_EQ(port.receive(), (std::vector<Packet>{pattern(60, 1)}));
  EXPECT_EQ((*device)->next_event(), at(100s + 3ms));
  clock.advance(3ms - 1ns);
  EXPECT_TRUE(port.receive().empty());
  clock.advance(1ns);
  EXPECT_EQ(port.receive(), (std::vector<Packet>{pattern(60, 2), pattern(60, 3)}));
  EXPECT_EQ((*device)->next_event(), kForever);
  EXPECT_FALSE((*device)->damaged());
  EXPECT_EQ(port.rx_slots_here(), 0u);
  EXPECT_EQ(port.counters().read(Counter::device_rx_frames), 3u);
}

TEST_F(Pcap, ReplaysAllAtOnceWithoutTiming) {
  write_file({{at(5s), pattern(60, 1)}, {at(500s), pattern(60, 2)}});
  auto untimed = options();
  untimed.timed = false;
  auto device = PcapFileDevice::open(untimed, port.home());
  ASSERT_TRUE(device);
  port.attach(**device);
  EXPECT_EQ(port.receive().size(), 2u);
}

TEST_F(Pcap, WaitsWithAPacketUntilThereIsASlot) {
  write_file({{at(5s), pattern(60, 1)}, {at(5s), pattern(60, 2)}});
  auto device = PcapFileDevice::open(options(), port.home());
  ASSERT_TRUE(device);
  std::array<FrameDesc, 4> out;
  EXPECT_EQ((*device)->rx_burst(out), 0u);
  port.attach(**device);
  EXPECT_EQ(port.receive(), (std::vector<Packet>{pattern(60, 1), pattern(60, 2)}));
}

TEST_F(Pcap, RecordsWhatIsSentWithVirtualTime) {
  auto device = PcapFileDevice::open({.record = path, .clock = [this] { return clock.now(); }, .mtu = 9000},
                                     port.home());
  ASSERT_TRUE(device);
  port.attach(**device);
  ASSERT_TRUE(port.send(pattern(60, 1)));
  clock.advance(7ms);
  ASSERT_TRUE(port.send(pattern(9014, 2)));  // several parts, one packet
  EXPECT_TRUE(port.slots_home());
  EXPECT_TRUE(port.receive().empty());
  device->reset();
  EXPECT_EQ(read_file(), (std::vector<std::pair<Instant, Packet>>{{at(100s), pattern(60, 1)},
                                                                  {at(100s + 7ms), pattern(9014, 2)}}));
}

TEST_F(Pcap, SaysSoIfTheRecordCannotBeWritten) {
  auto device =
      PcapFileDevice::open({.record = "/dev/full", .clock = [this] { return clock.now(); }}, port.home());
  ASSERT_TRUE(device);
  port.attach(**device);
  ASSERT_TRUE(port.send(pattern(60)));
  const auto flushed = (*device)->flush();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().sys_errno, ENOSPC);
}

TEST_F(Pcap, ReadsPcapngToo) {
  // Section header, interface (nanoseconds), one enhanced packet of 4 bytes.
  write_bytes({0x0a0d0d0a, 28, 0x1a2b3c4d, 1, 0xffffffff,    0xffffffff, 28,      //
               1,          32, 1,          0, 0x00010009,    9,          0,  32,  //
               6,          36, 0,          0, 1'000'000'007, 4,          4,  0x44434241, 36});
  EXPECT_EQ(read_file(),
            (std::vector<std::pair<Instant, Packet>>{{at(1'000'000'007ns), testkit::bytes("ABCD")}}));
}

TEST_F(Pcap, CountsAndSkipsWhatTheCaptureHoldsOnlyInPart) {
  write_bytes(with_header({1, 0, 4, 1000, 0x44434241, 1, 0, 4, 4, 0x44434241}));
  auto device = PcapFileDevice::open(options(), port.home());
  ASSERT_TRUE(device);
  port.attach(**device);
  EXPECT_EQ(port.receive(), std::vector<Packet>{testkit::bytes("ABCD")});
  EXPECT_EQ(port.counters().read(Counter::capture_cut), 1u);
}

TEST_F(Pcap, CountsAndSkipsWhatIsLargerThanTheMtu) {
  write_file({{at(0s), pattern(1519)}, {at(0s), pattern(1518)}});  // with a VLAN tag, 1518 is the most
  auto device = PcapFileDevice::open(options(), port.home());
  ASSERT_TRUE(device);
  port.attach(**device);
  EXPECT_EQ(port.receive(), std::vector<Packet>{pattern(1518)});
  EXPECT_EQ(port.counters().read(DropReason::device_frame_too_large), 1u);
}

TEST_F(Pcap, EndsWhereTheFileIsDamaged) {
  write_bytes(with_header({1, 0, 4, 4, 0x44434241, 1, 0, 0x7fffffff, 0x7fffffff, 1, 2, 3}));
  auto device = PcapFileDevice::open(options(), port.home());
  ASSERT_TRUE(device);
  port.attach(**device);
  EXPECT_EQ(port.receive().size(), 1u);
  EXPECT_TRUE((*device)->damaged());
  EXPECT_EQ((*device)->next_event(), kForever);
  EXPECT_TRUE(port.receive().empty());
}

TEST_F(Pcap, TimesThatGoBackOrAreAbsurdNeitherGoBackNorOverflow) {
  write_bytes(with_header({100,        0,          4, 4, 0x44434241,  //
                           50,         0,          4, 4, 0x44434241,  // earlier than the one before
                           101,        0xffffffff, 4, 4, 0x44434241,  // four seconds of nanoseconds
                           0xffffffff, 0,          4, 4, 0x44434241}));
  const auto packets = read_file();
  ASSERT_EQ(packets.size(), 4u);
  for (std::size_t i = 1; i < packets.size(); ++i) EXPECT_LE(packets[i - 1].first, packets[i].first);

  clock.advance_to(Instant{kForever.ns - 1000});
  auto device = PcapFileDevice::open(options(), port.home());
  ASSERT_TRUE(device);
  port.attach(**device);
  EXPECT_EQ(port.receive().size(), 2u);
  EXPECT_EQ((*device)->next_event(), kForever) << "after the end of time";
}

TEST_F(Pcap, SaysClearlyWhyItCannotOpen) {
  const auto code_of = [&](const PcapFileOptions& with) {
    const auto device = PcapFileDevice::open(with, port.home());
    return device ? "opened" : std::string(to_string(device.error().code));
  };
  EXPECT_EQ(code_of(options()), "invalid_argument") << "no such file";
  write_bytes({1, 2, 3}, "no capture at all");
  EXPECT_EQ(code_of(options()), "invalid_argument");
  auto raw_ip = kHeader;
  raw_ip.back() = 101;
  write_bytes(raw_ip);
  EXPECT_EQ(code_of(options()), "not_supported");
  write_bytes(kHeader);
  EXPECT_EQ(code_of(options()), "opened");
  EXPECT_EQ(code_of({.replay = path}), "invalid_argument") << "no clock";
  auto headroom = options();
  headroom.rx_headroom = 2048;
  EXPECT_EQ(code_of(headroom), "invalid_argument");
  EXPECT_EQ(code_of({.record = "/nowhere/at/all.pcap", .clock = options().clock}), "system");
}

TEST_F(Pcap, ACaptureRecordsBothWaysWhatPassed) {
  Port far;
  auto link = *LinkPair::open({.mtu = 9000, .multi_buffer = true}, port.home(), far.home());
  auto capture = CaptureDevice::open({.path = path, .clock = [this] { return clock.now(); }}, link->take_a(),
                                     port.region());
  ASSERT_TRUE(capture);
  EXPECT_EQ((*capture)->info().name, "link");
  port.attach(**capture);
  far.attach(link->b());

  ASSERT_TRUE(port.send(pattern(60, 1)));
  EXPECT_EQ(far.receive(), std::vector<Packet>{pattern(60, 1)});
  clock.advance(1ms);
  ASSERT_TRUE(far.send(pattern(9000, 2)));
  EXPECT_EQ(port.receive(), std::vector<Packet>{pattern(9000, 2)});
  EXPECT_TRUE(port.slots_home());

  const std::array hostile{FrameDesc{.slot = 0xffffffff, .length = 60}};
  EXPECT_EQ((*capture)->tx_burst(hostile), 1u);
  ASSERT_TRUE((*capture)->flush());
  EXPECT_EQ(read_file(),
            (std::vector<std::pair<Instant, Packet>>{
                {at(100s), pattern(60, 1)}, {at(100s + 1ms), pattern(9000, 2)}, {at(100s + 1ms), {}}}));
}

}  // namespace
}  // namespace netchannel::device
