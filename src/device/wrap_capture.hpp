// Records every packet that passes a device, both ways, in a capture file: those received when they are
// fetched, those sent when the device has taken them. For looking into what happens, not for production: it
// copies and writes.
#pragma once

#include <functional>
#include <vector>

#include "device/pcap_io.hpp"
#include "device/wrap_device.hpp"
#include "netchannel/frame.hpp"

namespace netchannel::device {

struct CaptureOptions {
  std::string path;
  std::function<Instant()> clock{};  // virtual or monotonic_now; what the file's times are
};

class CaptureDevice final : public WrapDevice {
 public:
  // Errors: invalid_argument (no clock), those of PcapWriter. The region is the inner device's and must
  // outlive this.
  static Result<std::unique_ptr<CaptureDevice>> open(const CaptureOptions& options,
                                                     std::unique_ptr<Device> inner,
                                                     const FrameRegion& region);
  std::size_t rx_burst(std::span<FrameDesc> out) noexcept override;
  std::size_t tx_burst(std::span<const FrameDesc> frames) noexcept override;
  // Hands what was recorded to the kernel; also done on closing. Errors: system.
  Result<void> flush() { return writer_.flush(); }

 private:
  CaptureDevice(std::unique_ptr<Device> inner, const FrameRegion& region, PcapWriter writer,
                const std::function<Instant()>& clock);
  void record(std::span<const FrameDesc> frames, std::vector<std::byte>& packet) noexcept;

  const FrameRegion& region_;
  PcapWriter writer_;
  std::function<Instant()> clock_;
  std::vector<std::byte> received_;  // of a packet whose rest comes with the next burst
  std::vector<std::byte> sent_;
};

}  // namespace netchannel::device
