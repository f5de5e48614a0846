// The kernel's receive descriptors, arbitrary ones. Whatever they say, frames lie within the region, and as
// long as each names a slot that was lent, every slot goes back or leaves with a frame, each once.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>

#include "device/af_xdp/rx_chain.hpp"

using namespace netchannel;

namespace {

constexpr std::uint32_t kChunk = 4096;
constexpr std::uint32_t kSlotSize = 16384;
constexpr std::uint32_t kSlots = 32;

void require(bool condition) {
  if (!condition) std::abort();
}

struct Descriptor {
  std::uint64_t address;
  std::uint32_t length;
  std::uint32_t options;
};

// What a hostile descriptor becomes when its address is an honest one.
std::uint64_t honest(std::uint64_t address, const std::set<std::uint32_t>& lent) {
  const std::uint32_t slot = *std::next(lent.begin(), static_cast<std::ptrdiff_t>(address % lent.size()));
  return std::uint64_t{slot} * kSlotSize + (address >> 32) % kChunk;
}

void run(const std::uint8_t* data, std::size_t size, bool honest_addresses) {
  static const std::unique_ptr<FrameRegion> region =
      std::move(*FrameRegion::open({.slot_size = kSlotSize, .slot_count = kSlots}));
  CounterPage counters;
  device::RxChain chain(*region, kChunk, counters);
  std::set<std::uint32_t> lent;
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) lent.insert(slot);
  std::set<std::uint32_t> held;  // parts of a packet that is not complete

  const auto feed = [&](Descriptor descriptor) {
    if (honest_addresses) {
      descriptor.address = honest(descriptor.address, lent);
      const auto slot = static_cast<std::uint32_t>(descriptor.address / kSlotSize);
      lent.erase(slot), held.insert(slot);
    }
    FrameDesc frame;
    device::SlotList home;
    const bool complete =
        chain.take({descriptor.address, descriptor.length, descriptor.options}, frame, home);
    require(home.size <= 2);
    if (complete) require(region->holds(frame) && frame.length > 0);
    if (!honest_addresses) return;
    for (std::size_t i = 0; i < home.size; ++i) {
      require(held.erase(home.slots[i]) == 1);
      lent.insert(home.slots[i]);
    }
    if (!complete) return;
    require(held.erase(frame.slot) == 1 && held.empty());
    lent.insert(frame.slot);  // used, and lent again
  };
  for (; size >= sizeof(Descriptor); data += sizeof(Descriptor), size -= sizeof(Descriptor)) {
    Descriptor descriptor;
    std::memcpy(&descriptor, data, sizeof(descriptor));
    feed(descriptor);
  }
  feed({.address = 0, .length = 1, .options = 0});
  if (honest_addresses) require(held.empty() && lent.size() == kSlots);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  run(data, size, true);
  run(data, size, false);
  return 0;
}
