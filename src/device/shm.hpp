// A device whose wires are shared memory: one link to each peer host of the same machine (shm_link.hpp). To
// the driver it is one interface with many stations. A link has a MAC address that only this host knows it
// by: a frame sent to that address goes into the link, and a frame that comes out of it has it as its source,
// whatever the peer wrote there, so that nobody can speak for another. What it cannot know is told by the
// owner, who meets the peers (add(), complete(), remove()).
//
//   small frame   copied into a cell and out of it: two copies of a few cache lines, and nothing to send home
//   larger frame  named in a cell, copied out of the sender's memory at once, and its slot sent home: a
//   reader that
//                 is slow, or never reads what arrived, holds none of the sender's slots
//
// Checksums are not made and not checked: nothing alters memory on the way. A peer that writes nonsense is
// cut off (channel_hostile) and named by take_gone(), as is one that has died. A peer that does not take its
// frames for a millisecond loses them until it takes some, so that it delays nobody else.
//
// While the host is awake, links are looked at in turn; beyond kAlwaysLookedAt of them, one that has been
// quiet for long is left alone until its peer rings. All calls come from one thread. Left out: frames of
// several parts, which no stack sends over a device whose slots hold the largest frame.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/copying_device.hpp"
#include "device/shm_link.hpp"
#include "netchannel/device.hpp"
#include "netchannel/time.hpp"

namespace netchannel::device {

struct ShmOptions {
  std::uint32_t mtu = 65400;       // layer-3 bytes
  std::uint32_t shown_slots = 0;   // the region's first, which peers read from
  std::uint16_t rx_headroom = 64;  // bytes left free at the front of a receive slot
  std::size_t most_links = 4096;
};

class ShmDevice final : public Device {
 public:
  static constexpr std::size_t kAlwaysLookedAt = 16;
  static constexpr Duration kPatience = std::chrono::milliseconds(1);

  // Errors: invalid_argument (a slot does not hold the largest frame), system.
  static Result<std::unique_ptr<ShmDevice>> open(const ShmOptions& options, DeviceHome home);
  ~ShmDevice() override;

  // The address of a new link. The memory is kLinkMemory bytes. Errors: no_memory (too many links).
  Result<MacAddress> add(Mapping memory, LinkRole role, UniqueFd bell);
  // The peer's frames are known now, and its bell is heard from now on. Until then only small frames come
  // through, and whoever added the link listens on bell_of(). False: no such link.
  bool complete(const MacAddress& link, PeerFrames frames);
  int bell_of(const MacAddress& link) const;  // -1: no such link
  // What the peer still has of our slots comes home, what it sent and was not read is lost.
  void remove(const MacAddress& link);
  // Links whose peer has gone or lied, each named once. What the peer sent before it went can still be read.
  std::size_t take_gone(std::span<MacAddress> out);
  bool has_gone() const { return !gone_.empty(); }
  bool has_frames(const MacAddress& link) const;
  std::size_t links() const { return used_; }
  bool has_room() const { return used_ < options_.most_links; }
  // Asks the kernel about bells and peers that have gone: a system call, for now and then. True if any had
  // news.
  bool look();

  std::size_t refill(std::span<const std::uint32_t> slots) noexcept override;
  std::size_t rx_burst(std::span<FrameDesc> out) noexcept override;
  std::size_t tx_burst(std::span<const FrameDesc> frames) noexcept override;
  std::size_t reclaim(std::span<FrameDesc> out) noexcept override;
  const DeviceInfo& info() const noexcept override { return info_; }
  bool prepare_sleep() noexcept override;

 private:
  struct Link;
  ShmDevice(const ShmOptions& options, DeviceHome home, UniqueFd epoll);

  std::optional<std::size_t> index_of(const MacAddress& link) const;
  Link* link_of(const FrameDesc& frame) noexcept;
  enum class Sent : std::uint8_t { yes, full, dropped };
  Sent send(Link& link, const FrameDesc& frame) noexcept;
  bool acceptable(const FrameDesc& frame) const noexcept;
  bool waits_for(Link& link) noexcept;
  bool readable(const Link& link) const noexcept;
  std::size_t receive(Link& link, std::span<FrameDesc> out) noexcept;
  bool judge(Link& link, const CellHeader& frame) noexcept;
  FrameDesc take_in(Link& link, const CellHeader& frame) noexcept;
  void bring_home(Link& link) noexcept;
  void ring(Link& link, std::uint32_t reason) noexcept;
  void ring_touched() noexcept;
  void fall_asleep(Link& link) noexcept;
  void wake_up() noexcept;
  void hear(Link& link) noexcept;
  void drain(Link& link) noexcept;
  void warm(Link& link) noexcept;
  void cool_down() noexcept;
  void lose(Link& link) noexcept;
  void liar(Link& link) noexcept;

  DeviceInfo info_;
  DeviceHome home_;
  ShmOptions options_;
  UniqueFd epoll_;  // every bell
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<Link*> hot_;  // looked at in every turn
  std::size_t turn_ = 0;    // who of them is first
  std::size_t used_ = 0;
  std::uint16_t generation_ = 0;
  std::vector<std::uint32_t> lent_;   // receive slots, empty; the last is used first
  std::vector<std::uint32_t> done_;   // transmit slots on their way home
  std::vector<std::uint32_t> owner_;  // of each shown slot: the link that has it + 1; 0: nobody
  std::uint32_t slots_out_ = 0;       // with all links
  std::vector<Link*> touched_;        // sent to in this burst
  std::vector<MacAddress> gone_;
  bool asleep_ = false;  // announced to the hot links
};

}  // namespace netchannel::device
