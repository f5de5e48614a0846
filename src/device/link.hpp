// An in-process pair of devices with a wire between them, in virtual time: delay, jitter, loss, reordering,
// duplication, corruption and a rate with a queue, each direction for itself. The same seed and the same
// calls give the same packets, bit for bit.
//
//   a.tx_burst -> loss -> queue (tail drop) -> rate -> delay, jitter, reorder -> receive queue -> b.rx_burst
//
// Time stands still until set_time() moves it. Both ends, the pair and the time belong to one thread. The
// wire copies bytes, so the regions of the ends may be different. Left out on purpose: collisions, preamble
// and frame check; rate and queue count the bytes of the frame as given.
#pragma once

#include <cstdint>
#include <memory>

#include "device/copying_device.hpp"
#include "netchannel/time.hpp"

namespace netchannel::device {

// Probabilities are 0 to 1 for each frame.
struct LinkDirection {
  Duration delay{};
  Duration jitter{};  // up to so much more, evenly spread; never lets a frame overtake another
  double loss = 0;
  double duplicate = 0;  // the copy arrives right behind, at no cost in rate
  double corrupt = 0;    // corrupt_bits flipped, anywhere in the frame
  std::uint32_t corrupt_bits = 1;
  double reorder = 0;  // the frame arrives reorder_by later, and those behind it do not wait for it
  Duration reorder_by = std::chrono::milliseconds(1);
  std::uint64_t rate = 0;  // bits per second; 0: no limit
  std::size_t queue_bytes =
      0;  // waiting or being sent, at most; a frame that does not fit is dropped. 0: no limit
  std::size_t rx_frames = 4096;  // arrived and not yet fetched, at most (a NIC without lent slots)
};

struct LinkOptions {
  LinkDirection a_to_b{};
  LinkDirection b_to_a{};
  std::uint64_t seed = 1;
  std::uint32_t mtu = 1500;
  std::uint32_t max_tx_frame = 0;  // bytes; 0: mtu + 14. More: takes super-frames
  // Passes checksum state and segment size to the other end, as shared memory does. If not, only bytes
  // arrive.
  bool offloads = false;
  // A frame longer than a receive slot comes in several parts; if not, it is dropped and counted.
  bool multi_buffer = false;
  std::uint16_t rx_headroom = 64;  // bytes left free at the front of a receive slot
  MacAddress mac_a{{0x02, 0, 0, 0, 0, 0x0a}};
  MacAddress mac_b{{0x02, 0, 0, 0, 0, 0x0b}};
};

// What became of the packets of one direction. Packets, but for bytes_delivered.
struct LinkStats {
  std::uint64_t sent = 0;         // taken by tx_burst
  std::uint64_t lost = 0;         // by `loss`
  std::uint64_t queue_drops = 0;  // by `queue_bytes`
  std::uint64_t duplicated = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t reordered = 0;
  std::uint64_t receive_drops = 0;  // by `rx_frames`, or too large for the receiver's slots
  std::uint64_t delivered = 0;      // fetched by rx_burst
  std::uint64_t bytes_delivered = 0;
  friend bool operator==(const LinkStats&, const LinkStats&) = default;
};

class LinkPair {
 public:
  // Errors: invalid_argument (a probability outside 0 to 1, negative time, headroom that leaves no room).
  static Result<std::unique_ptr<LinkPair>> open(const LinkOptions& options, DeviceHome a, DeviceHome b);
  ~LinkPair();

  Device& a();
  Device& b();
  // Gives an end to a new owner, once; the end and this pair may be destroyed in any order.
  std::unique_ptr<Device> take_a();
  std::unique_ptr<Device> take_b();

  // Moves time forward (an earlier instant is ignored); what is due by then has arrived.
  void set_time(Instant now);
  Instant now() const;
  // When the next frame that is still under way arrives; kForever if none is. What has arrived is no event:
  // poll.
  Instant next_event() const;

  const LinkStats& a_to_b() const;
  const LinkStats& b_to_a() const;
  // Changes what befalls the frames sent from now on. Errors: invalid_argument.
  Result<void> change(const LinkDirection& a_to_b, const LinkDirection& b_to_a);

 private:
  struct State;
  explicit LinkPair(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
  std::unique_ptr<Device> a_;
  std::unique_ptr<Device> b_;
  Device* a_view_ = nullptr;
  Device* b_view_ = nullptr;
};

}  // namespace netchannel::device
