// A capture file as a device: what the file holds is received, each packet when its time has come, and what
// is sent is recorded. Without timing all is there at once. Bare: nobody answers, so whoever replays chooses
// the MAC that the captured frames were sent to.
//
// The file's first packet arrives at the clock's time when the device is opened, the others as much later as
// they were captured. Packets that the capture holds only in part are counted (capture_cut) and not replayed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "device/copying_device.hpp"
#include "device/pcap_io.hpp"
#include "netchannel/time.hpp"

namespace netchannel::device {

struct PcapFileOptions {
  std::string replay{};              // path; empty: nothing is received
  std::string record{};              // path; empty: what is sent is dropped
  std::function<Instant()> clock{};  // virtual or monotonic_now
  bool timed = true;                 // false: as fast as it is fetched
  MacAddress mac{};
  std::uint32_t mtu = 1500;
  std::uint16_t rx_headroom = 64;  // bytes left free at the front of a receive slot
};

class PcapFileDevice final : public CopyingDevice {
 public:
  // Errors: those of PcapReader and PcapWriter; invalid_argument.
  static Result<std::unique_ptr<PcapFileDevice>> open(const PcapFileOptions& options, DeviceHome home);

  std::size_t rx_burst(std::span<FrameDesc> out) noexcept override;
  // When the next packet arrives; kForever at the end of the file.
  Instant next_event() const { return pending_ ? arrival_ : kForever; }
  // The file ended in the middle of a packet or makes no sense from there on.
  bool damaged() const { return reader_ && reader_->damaged(); }
  // Hands what was recorded to the kernel; also done on closing. Errors: system.
  Result<void> flush() { return writer_ ? writer_->flush() : Result<void>{}; }

 private:
  PcapFileDevice(DeviceInfo info, DeviceHome home, const PcapFileOptions& options);
  Sent send(std::span<const FrameDesc> parts, std::size_t bytes) noexcept override;
  void fetch() noexcept;
  bool fits(std::size_t bytes) const {
    return bytes <= info_.mtu + kEthernetHeader + kVlanTag && parts_for(bytes) <= kMaxParts;
  }
  Instant arrival_of(Instant captured) const;

  std::function<Instant()> clock_;
  bool timed_;
  std::optional<PcapReader> reader_;
  std::optional<PcapWriter> writer_;
  std::optional<PcapReader::Captured> pending_;  // read and not yet delivered
  Instant arrival_;                              // of the pending packet
  Instant opened_;                               // when the first packet arrives
  std::optional<Instant> first_;                 // when it was captured
  std::vector<std::byte> scratch_;               // a sent packet put together
};

}  // namespace netchannel::device
