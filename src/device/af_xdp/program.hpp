// Our XDP program on an interface: loaded, attached by one bpf_link and never pinned, so that it goes with
// the process however that ends. Claims are entries of its claim table, the sockets that serve
// its queues entries of its XSKMAP.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "device/af_xdp/probe.hpp"
#include "device/claim_table.hpp"

struct steer;  // the skeleton that bpftool makes of bpf/steer.bpf.c

namespace netchannel::device {

enum class XdpMode : std::uint8_t { automatic, native, generic };

class XdpProgram {
 public:
  struct Options {
    XdpMode mode = XdpMode::automatic;
    std::uint32_t max_claims = 65536;
  };
  // Errors: not_permitted, device_busy, not_supported, no_memory, system.
  static Result<std::unique_ptr<XdpProgram>> attach(const XdpCapabilities& interface, const Options& options);
  ~XdpProgram();
  XdpProgram(const XdpProgram&) = delete;
  XdpProgram& operator=(const XdpProgram&) = delete;

  // Frames that come in on `queue` and are claimed go to this AF_XDP socket from now on.
  Result<void> serve(std::uint32_t queue, int socket);
  ClaimTable& claims() { return *claims_; }

  bool native() const { return native_; }
  const std::string& why_not_native() const { return why_not_native_; }

 private:
  XdpProgram() = default;
  Result<void> load(const XdpCapabilities& interface, const Options& options);
  Result<void> link(const XdpCapabilities& interface, XdpMode mode);
  struct Destroy {
    void operator()(steer* skeleton) const;
  };
  std::unique_ptr<steer, Destroy> skeleton_;
  std::optional<ClaimTable> claims_;  // of the skeleton
  UniqueFd link_;                     // goes first
  bool native_ = false;
  std::string why_not_native_;
};

}  // namespace netchannel::device
