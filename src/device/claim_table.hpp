// The claims of a BPF program (bpf/claim_table.h) from user space's side: entries of its hash map, and the
// count of exact ones in its memory. From any thread: the kernel's maps are safe to share, and the count is
// atomic.
#pragma once

#include <cstdint>

#include "netchannel/device.hpp"

namespace netchannel::device {

class ClaimTable final : public Steering {
 public:
  // The map's descriptor and the program's count, both of which must outlive this.
  ClaimTable(int map, std::uint32_t& exact_claims) : map_(map), exact_claims_(exact_claims) {}

  Result<void> claim(const FlowKey& flow) override;
  Result<void> unclaim(const FlowKey& flow) override;

 private:
  int map_;
  std::uint32_t& exact_claims_;
};

}  // namespace netchannel::device
