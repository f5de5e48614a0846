// Two hosts' devices joined by a link of shared memory, as two processes would hold it: each maps the link
// and the other's frames through descriptors of its own. Whoever wants to lie maps them once more
// (hostile()).
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "device/clock.hpp"
#include "device/shm.hpp"
#include "testkit/frames.hpp"

namespace netchannel::device {

using testkit::Packet;
inline Packet pattern(std::size_t size, std::size_t seed = 0) {
  return testkit::pattern(size, static_cast<std::uint8_t>(seed));
}

inline constexpr std::uint32_t kSlots = 64;
inline constexpr std::uint32_t kSlotSize = 64 << 10;

struct Bells {
  UniqueFd a, b;
  Bells() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    a.reset(ends[0]);
    b.reset(ends[1]);
  }
};

// A host's memory and device, and a test in the driver's place.
class ShmHost {
 public:
  ShmHost() {
    region_ = *FrameRegion::open({.slot_size = kSlotSize, .slot_count = 2 * kSlots, .shown_slots = kSlots});
    counters_ = std::make_unique<CounterPage>();
    device_ = *ShmDevice::open({.shown_slots = kSlots}, {*region_, *counters_});
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      free_.push_back(slot);
      const std::uint32_t lent = kSlots + slot;
      EXPECT_EQ(device_->refill({&lent, 1}), 1u);
    }
  }
  ShmDevice& device() { return *device_; }
  FrameRegion& region() { return *region_; }
  std::uint64_t counter(Counter counter) const { return counters_->read(counter); }
  std::uint64_t counter(DropReason reason) const { return counters_->read(reason); }
  PeerFrames show() const {
    auto mapping =
        Mapping::of_stranger(::dup(region_->fd()), std::size_t{kSlots} * kSlotSize, Mapping::Access::read);
    EXPECT_TRUE(mapping) << mapping.error().what;
    return {std::move(*mapping), kSlots, kSlotSize};
  }

  // A frame to that station with `payload` behind its Ethernet header. False: the device is full.
  bool send(const MacAddress& to, Bytes payload, FrameDesc meta = {}) {
    take_home();
    if (free_.empty()) return false;
    meta.slot = free_.back();
    meta.offset = 64;
    meta.length = static_cast<std::uint32_t>(14 + payload.size());
    const MutableBytes at = region_->bytes_of(meta);
    std::memcpy(at.data(), to.bytes.data(), 6);
    std::memset(at.data() + 6, 0xee, 8);
    if (!payload.empty()) std::memcpy(at.data() + 14, payload.data(), payload.size());
    if (device_->tx_burst({&meta, 1}) == 0) return false;
    free_.pop_back();
    return true;
  }
  struct Received {
    MacAddress to, from;
    Packet payload;
    FrameDesc desc;
  };
  std::vector<Received> receive() {
    std::vector<Received> out;
    std::array<FrameDesc, kBurst> burst;
    while (const std::size_t n = device_->rx_burst(burst)) {
      for (const FrameDesc& desc : std::span(burst).first(n)) {
        const Bytes bytes = region_->bytes_of(desc);
        Received got;
        std::memcpy(got.to.bytes.data(), bytes.data(), 6);
        std::memcpy(got.from.bytes.data(), bytes.data() + 6, 6);
        got.payload.assign(bytes.begin() + 14, bytes.end());
        got.desc = desc;
        out.push_back(std::move(got));
        EXPECT_EQ(device_->refill({&desc.slot, 1}), 1u);
      }
    }
    return out;
  }
  // Slots that are not out with anybody.
  std::size_t slots_here() {
    take_home();
    return free_.size();
  }
  std::vector<MacAddress> gone() {
    std::array<MacAddress, 16> out;
    const std::size_t n = device_->take_gone(out);
    return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n)};
  }

 private:
  void take_home() {
    std::array<FrameDesc, kBurst> done;
    while (const std::size_t n = device_->reclaim(done)) {
      for (const FrameDesc& desc : std::span(done).first(n)) free_.push_back(desc.slot);
    }
  }
  std::unique_ptr<FrameRegion> region_;
  std::unique_ptr<CounterPage> counters_;
  std::unique_ptr<ShmDevice> device_;
  std::vector<std::uint32_t> free_;
};

// A link from a to b, with the address that each has for it.
struct Link {
  MacAddress at_a, at_b;
  Mapping spy;  // the link's memory once more
};

inline Link join(ShmHost& a, ShmHost& b) {
  auto memory = make_link_memory();
  EXPECT_TRUE(memory);
  Link link;
  link.spy = *Mapping::of_stranger(memory->fd.get(), kLinkMemory, Mapping::Access::read_write);
  auto theirs = *Mapping::of_stranger(memory->fd.get(), kLinkMemory, Mapping::Access::read_write);
  Bells bells;
  link.at_a = *a.device().add(std::move(memory->mapping), LinkRole::connector, std::move(bells.a));
  link.at_b = *b.device().add(std::move(theirs), LinkRole::acceptor, std::move(bells.b));
  EXPECT_TRUE(a.device().complete(link.at_a, b.show()));
  EXPECT_TRUE(b.device().complete(link.at_b, a.show()));
  return link;
}

class ShmTest : public ::testing::Test {
 protected:
  ShmHost a, b;
};

}  // namespace netchannel::device
