// The bulk lane's two BPF programs (bpf/redirect.bpf.c): loaded, each attached at a tcx ingress hook by a
// bpf_link and never pinned, so that they go with the process however that ends. At the interface we stand
// first, as XDP would: a claimed flow is ours before any other tc program decides about it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/unique_fd.hpp"
#include "device/claim_table.hpp"

struct redirect;  // the skeleton that bpftool makes of bpf/redirect.bpf.c

namespace netchannel::device {

class RedirectProgram {
 public:
  struct Options {
    std::uint32_t interface_index = 0;
    std::uint32_t tap_index = 0;
    std::uint32_t max_claims = 65536;
    bool verbose = false;  // let libbpf print to stderr
  };
  // Errors: not_permitted, not_supported (older than Linux 6.6), no_such_device, no_memory.
  static Result<std::unique_ptr<RedirectProgram>> attach(const Options& options);
  ~RedirectProgram();
  RedirectProgram(const RedirectProgram&) = delete;
  RedirectProgram& operator=(const RedirectProgram&) = delete;

  ClaimTable& claims() { return *claims_; }
  // Ahead of the destructor: claimed flows are the kernel's from now on.
  void detach() { at_interface_.reset(), at_tap_.reset(); }

 private:
  RedirectProgram() = default;
  Result<void> load(const Options& options);
  struct Destroy {
    void operator()(redirect* skeleton) const;
  };
  std::unique_ptr<redirect, Destroy> skeleton_;
  std::optional<ClaimTable> claims_;  // of the skeleton
  UniqueFd at_tap_;
  UniqueFd at_interface_;  // goes first
};

}  // namespace netchannel::device
