// Which transmit slots are out, and when one is home. A frame that crosses chunk boundaries takes a
// descriptor for each chunk and the kernel completes each by itself; the frame's slot is reported once, after
// its last. A slot may be out several times at once (a retransmission of bytes still in the ring), and is
// then reported as often.
//
// For a slot, let d be its descriptors out and f its frames not yet reported. A completion (d := d - 1)
// reports one frame if d < f then. So at most one report a completion, the last one only at d = 0, and no
// report before the descriptors left could all belong to the frames left.
#pragma once

#include <cstdint>
#include <vector>

namespace netchannel::device {

class TxLedger {
 public:
  explicit TxLedger(std::uint32_t slot_count) : slots_(slot_count) {}

  // `slot` is below slot_count, `descriptors` above 0.
  void sent(std::uint32_t slot, std::uint32_t descriptors) {
    slots_[slot].descriptors += descriptors;
    slots_[slot].frames += 1;
  }

  // True: report the slot, one frame of it is home. False also for a completion of what was never sent.
  bool completed(std::uint32_t slot) {
    Out& out = slots_[slot];
    if (out.descriptors == 0) return false;
    --out.descriptors;
    if (out.descriptors >= out.frames) return false;
    --out.frames;
    return true;
  }

 private:
  struct Out {
    std::uint32_t descriptors = 0;
    std::uint32_t frames = 0;
  };
  std::vector<Out> slots_;
};

}  // namespace netchannel::device
