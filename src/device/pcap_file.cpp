#include "device/pcap_file.hpp"

namespace netchannel::device {

Result<std::unique_ptr<PcapFileDevice>> PcapFileDevice::open(const PcapFileOptions& options,
                                                             DeviceHome home) {
  if (!options.clock)
    return fail(ErrorCode::invalid_argument, "a capture file needs a clock to be replayed by");
  if (options.rx_headroom >= home.region.slot_size()) {
    return fail(ErrorCode::invalid_argument, "rx_headroom must be less than the size of a frame slot");
  }
  DeviceInfo info;
  info.name = options.replay.empty() ? options.record : options.replay;
  info.mode = "pcap file";
  info.mac = options.mac;
  info.mtu = options.mtu;
  info.max_tx_frame = options.mtu + static_cast<std::uint32_t>(kEthernetHeader);
  info.bare = true;
  std::unique_ptr<PcapFileDevice> device(new PcapFileDevice(std::move(info), home, options));
  if (!options.replay.empty()) {
    auto reader = PcapReader::open(options.replay);
    if (!reader) return tl::unexpected(reader.error());
    device->reader_.emplace(std::move(*reader));
    device->fetch();
  }
  if (!options.record.empty()) {
    auto writer = PcapWriter::open(options.record);
    if (!writer) return tl::unexpected(writer.error());
    device->writer_.emplace(std::move(*writer));
  }
  return device;
}

PcapFileDevice::PcapFileDevice(DeviceInfo info, DeviceHome home, const PcapFileOptions& options)
    : CopyingDevice(std::move(info), home, options.rx_headroom),
      clock_(options.clock),
      timed_(options.timed),
      opened_(clock_()) {
  scratch_.reserve(info_.max_tx_frame);
}

// Reads on to the next packet that can be replayed.
void PcapFileDevice::fetch() noexcept {
  while ((pending_ = reader_->next())) {
    if (!first_) first_ = pending_->when;
    arrival_ = arrival_of(pending_->when);
    if (pending_->cut) {
      home_.counters.add(Counter::capture_cut);
    } else if (!fits(pending_->bytes.size())) {
      home_.counters.drop(DropReason::device_frame_too_large);
    } else {
      return;
    }
  }
}

// The reader's times never go back, but they may be centuries apart.
Instant PcapFileDevice::arrival_of(Instant captured) const {
  if (!timed_) return opened_;
  const Duration later = captured - *first_;
  return later < kForever - opened_ ? opened_ + later : kForever;
}

std::size_t PcapFileDevice::rx_burst(std::span<FrameDesc> out) noexcept {
  if (!pending_) return 0;
  const Instant now = clock_();
  std::size_t filled = 0;
  while (pending_ && arrival_ <= now) {
    const std::size_t parts = deliver(pending_->bytes, out.subspan(filled));
    if (parts == 0) break;
    filled += parts;
    fetch();
  }
  return filled;
}

CopyingDevice::Sent PcapFileDevice::send(std::span<const FrameDesc> parts, std::size_t /*bytes*/) noexcept {
  if (!writer_) return Sent::yes;
  scratch_.clear();
  for (const FrameDesc& part : parts) {
    const Bytes bytes = home_.region.bytes_of(part);
    scratch_.insert(scratch_.end(), bytes.begin(), bytes.end());
  }
  writer_->write(clock_(), scratch_);
  return Sent::yes;
}

}  // namespace netchannel::device
