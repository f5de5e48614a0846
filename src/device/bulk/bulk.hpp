// The bulk device: super-frames of up to 64 KiB to and from any Ethernet interface, beside the kernel. Frames
// of claimed flows are redirected to a TAP of our own, everything else stays the kernel's; what we send is
// redirected out of the interface (bpf/redirect.bpf.c). Cutting, coalescing and checksums are the NIC's or
// the kernel's, wherever they are best done, so a whole super-frame crosses into user space with one read()
// and out of it with one writev().
//
//                   rx_burst(): read()                 tx_burst(): writev()
//                          ^                                  |
//                   [ vnet header | frame ]           [ vnet header | frame ]
//                          |                                  v
//   kernel:              egress <--------- our TAP -------> ingress
//                          ^                                  |
//                       claimed                         everything written
//                          |                                  v
//                 interface's ingress                interface's egress, qdisc
//                          |
//                        PASS ----------> the kernel's own sockets
//
// A received frame is read straight into its slot, the header into the last bytes of the headroom before it;
// a sent one goes from its slots behind a header of its own. So a slot must hold the largest frame: the
// region's slots are of kSlotSize (virtual memory costs nothing where no frame has been). A frame with a
// segment size must have a partial checksum, whose field holds the pseudo-header sum of the whole frame, as
// the kernel's own super-frames have it.
//
// What can happen meanwhile: the interface or the TAP goes down or is deleted. Then frames sent are consumed
// and counted (device_link_down), as with a pulled cable; when either is deleted, claimed flows are the
// kernel's again. A new MTU is followed.
//
// One thread uses it, the driver's; claims may come from any. Left out on purpose: more than one TAP queue
// (one thread reads no faster from two), and fragments of claimed flows, which pass to the kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "device/bulk/link_watch.hpp"
#include "device/bulk/own_tap.hpp"
#include "device/bulk/program.hpp"
#include "device/copying_device.hpp"

namespace netchannel::device {

struct BulkOptions {
  std::string interface{};
  std::uint32_t max_claims = 65536;
  // Bytes sent and still on this machine, in a queueing discipline or a NIC's ring; beyond, tx_burst() is
  // busy.
  std::uint32_t send_buffer = 4 << 20;
  std::uint16_t rx_headroom = 64;  // bytes left free at the front of a receive slot; at least 12
  bool verbose = false;            // let libbpf print to stderr
};

class BulkDevice final : public CopyingDevice, public Steering {
 public:
  static constexpr std::uint32_t kSlotSize = 128 << 10;

  // Errors: no_such_device, device_down, not_permitted, not_supported (Linux before 6.6, no TAP, no
  // Ethernet), invalid_argument (slots too small), device_busy, no_memory, system.
  static Result<std::unique_ptr<BulkDevice>> open(const BulkOptions& options, DeviceHome home);

  std::size_t rx_burst(std::span<FrameDesc> out) noexcept override;
  std::size_t tx_burst(std::span<const FrameDesc> frames) noexcept override;
  bool prepare_sleep() noexcept override;
  Steering* steering() noexcept override { return this; }
  void refresh_counters() noexcept override;

  Result<void> claim(const FlowKey& flow) override { return program_->claims().claim(flow); }
  Result<void> unclaim(const FlowKey& flow) override { return program_->claims().unclaim(flow); }

  const std::string& tap_name() const { return tap_.name; }
  // False once the TAP or the interface has been deleted: open another device.
  bool alive() const { return alive_; }

 private:
  BulkDevice(DeviceInfo info, DeviceHome home, const BulkOptions& options, LinkWatch link, OwnTap tap);
  bool take_in(std::size_t bytes, FrameDesc& out) noexcept;
  Sent send(std::span<const FrameDesc> parts, std::size_t bytes) noexcept override;
  Sent failed(Counter counter) noexcept;
  void look_at_link() noexcept;
  void bury(const char* what) noexcept;

  LinkWatch link_;
  OwnTap tap_;
  UniqueFd silence_;  // takes the TAP's descriptor's place when it is gone
  std::unique_ptr<RedirectProgram> program_;
  std::uint32_t bursts_ = 0;
  bool alive_ = true;
};

}  // namespace netchannel::device
