#include "device/wrap_capture.hpp"

namespace netchannel::device {

Result<std::unique_ptr<CaptureDevice>> CaptureDevice::open(const CaptureOptions& options,
                                                           std::unique_ptr<Device> inner,
                                                           const FrameRegion& region) {
  if (!options.clock) return fail(ErrorCode::invalid_argument, "a capture needs a clock");
  auto writer = PcapWriter::open(options.path);
  if (!writer) return tl::unexpected(writer.error());
  return std::unique_ptr<CaptureDevice>(
      new CaptureDevice(std::move(inner), region, std::move(*writer), options.clock));
}

CaptureDevice::CaptureDevice(std::unique_ptr<Device> inner, const FrameRegion& region, PcapWriter writer,
                             const std::function<Instant()>& clock)
    : WrapDevice(std::move(inner)), region_(region), writer_(std::move(writer)), clock_(clock) {}

std::size_t CaptureDevice::rx_burst(std::span<FrameDesc> out) noexcept {
  const std::size_t n = inner_->rx_burst(out);
  if (n != 0) record(out.first(n), received_);
  return n;
}

std::size_t CaptureDevice::tx_burst(std::span<const FrameDesc> frames) noexcept {
  const std::size_t n = inner_->tx_burst(frames);
  if (n != 0) record(frames.first(n), sent_);
  return n;
}

void CaptureDevice::record(std::span<const FrameDesc> frames, std::vector<std::byte>& packet) noexcept {
  const Instant now = clock_();
  for (const FrameDesc& frame : frames) {
    // What the device refuses for that it counts; here it must only do no harm.
    if (region_.holds(frame) && packet.size() < kMostCaptured) {
      const Bytes bytes = region_.bytes_of(frame);
      packet.insert(packet.end(), bytes.begin(), bytes.end());
    }
    if ((frame.flags & kContinues) != 0) continue;
    writer_.write(now, packet);
    packet.clear();
  }
}

}  // namespace netchannel::device
