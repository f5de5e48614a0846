// Memory of the owner's side for received datagrams, on a host with a keeper: what the application holds and
// drops whenever it likes may not be the stack's, which the keeper works on. A datagram is copied once.
#pragma once

#include <algorithm>
#include <memory>
#include <span>

#include "netchannel/datagram.hpp"
#include "netchannel/error.hpp"
#include "netchannel/frame.hpp"

namespace netchannel {

class DatagramCopies {
 public:
  // Errors: no_memory.
  Result<void> open() {
    auto region = FrameRegion::open({.slot_size = 64 << 10, .slot_count = kSlots});
    if (!region) return tl::unexpected(region.error());
    region_ = std::move(*region);
    pool_ = std::make_unique<FramePool>(*region_, 0, kSlots, FramePool::Start::all_free);
    return {};
  }
  bool wanted() const { return pool_ != nullptr; }
  // How many datagrams there is room for.
  std::size_t room() const { return pool_->free_count(); }
  void take_over(std::span<Datagram> received) {
    for (Datagram& datagram : received) {
      Frame copy = std::move(*pool_->allocate(0));
      const MutableBytes to = copy.append(datagram.payload.size());
      std::copy(datagram.payload.begin(), datagram.payload.end(), to.begin());
      datagram.payload = to;
      datagram.frame = std::move(copy);
    }
  }

 private:
  static constexpr std::uint32_t kSlots = 4096;  // cost memory only where they are touched
  std::unique_ptr<FrameRegion> region_;
  std::unique_ptr<FramePool> pool_;
};

}  // namespace netchannel
