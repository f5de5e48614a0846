#include "device/shm.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "device/clock.hpp"

namespace netchannel::device {
namespace {

constexpr std::uint16_t kOurs = 0xffff;  // in place of a link's index
constexpr std::uint32_t kQuietTurns = 10'000;
constexpr int kMostRings = 16;  // read from one bell at a time
constexpr std::uint16_t kFlagsOfPeers = kChecksumVerified | kChecksumPartial;

// Locally administered, and in it the index of a link and how often links have been made before it.
MacAddress address_of(std::uint16_t index, std::uint16_t generation) {
  return {{0x02, 0x6c, static_cast<std::uint8_t>(generation >> 8), static_cast<std::uint8_t>(generation),
           static_cast<std::uint8_t>(index >> 8), static_cast<std::uint8_t>(index)}};
}

std::uint16_t index_in(const std::uint8_t* mac) { return static_cast<std::uint16_t>(mac[4] << 8 | mac[5]); }

}  // namespace

struct ShmDevice::Link {
  Link(LinkEnd given, std::size_t at, const MacAddress& address)
      : end(std::move(given)), index(at), mac(address) {}
  LinkEnd end;
  std::size_t index;
  MacAddress mac;
  Instant full_since;             // zero: there was room the last time
  std::uint32_t quiet_turns = 0;  // looked at in vain
  std::uint32_t owed_rings = 0;   // rung and not read from the bell yet
  bool complete = false;
  bool announced = false;  // that we sleep
  bool cold = false;       // not in hot_
  bool touched = false;
  bool gone = false;
};

Result<std::unique_ptr<ShmDevice>> ShmDevice::open(const ShmOptions& options, DeviceHome home) {
  const std::size_t largest = options.mtu + kEthernetHeader;
  const bool sane = options.shown_slots <= std::min(home.region.slot_count(), kMostShownSlots) &&
                    options.most_links < kOurs && largest + options.rx_headroom <= home.region.slot_size();
  if (!sane) {
    return fail(
        ErrorCode::invalid_argument,
        "a slot must hold the largest frame of a shared-memory device, and at most 1024 can be shown");
  }
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll)
    return fail(ErrorCode::system, "cannot make an epoll instance; raise the limit of open files", errno);
  return std::unique_ptr<ShmDevice>(new ShmDevice(options, home, std::move(epoll)));
}

ShmDevice::ShmDevice(const ShmOptions& options, DeviceHome home, UniqueFd epoll)
    : home_(home), options_(options), epoll_(std::move(epoll)), owner_(options.shown_slots) {
  info_.name = "local";
  info_.mode = "shared memory";
  info_.mac = address_of(kOurs, 0);
  info_.mtu = options.mtu;
  info_.max_tx_frame = options.mtu + static_cast<std::uint32_t>(kEthernetHeader);
  info_.tx_checksum = true;
  info_.sleep_fd = epoll_.get();
  lent_.reserve(home.region.slot_count());
  done_.reserve(home.region.slot_count());
}

ShmDevice::~ShmDevice() = default;

// --- links ---

Result<MacAddress> ShmDevice::add(Mapping memory, LinkRole role, UniqueFd bell) {
  if (!has_room() || memory.size() != kLinkMemory)
    return fail(ErrorCode::no_memory, "too many peers on this machine; close some, or open another host");
  auto place = std::find(links_.begin(), links_.end(), nullptr);
  if (place == links_.end()) place = links_.insert(place, nullptr);
  const auto index = static_cast<std::size_t>(place - links_.begin());
  const MacAddress mac = address_of(static_cast<std::uint16_t>(index), ++generation_);
  *place = std::make_unique<Link>(LinkEnd(std::move(memory), role, std::move(bell)), index, mac);
  hot_.push_back(place->get());
  touched_.reserve(links_.size());
  ++used_;
  return mac;
}

std::optional<std::size_t> ShmDevice::index_of(const MacAddress& link) const {
  const std::uint16_t index = index_in(link.bytes.data());
  if (index >= links_.size() || links_[index] == nullptr || links_[index]->mac != link) return std::nullopt;
  return index;
}

bool ShmDevice::complete(const MacAddress& mac, PeerFrames frames) {
  const auto index = index_of(mac);
  if (!index) return false;
  Link& link = *links_[*index];
  link.end.peer = std::move(frames);
  link.complete = true;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = *index;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, link.end.bell.get(), &event) != 0) lose(link);
  return true;
}

int ShmDevice::bell_of(const MacAddress& mac) const {
  const auto index = index_of(mac);
  return index ? links_[*index]->end.bell.get() : -1;
}

bool ShmDevice::has_frames(const MacAddress& mac) const {
  const auto index = index_of(mac);
  return index && !links_[*index]->end.broken() && readable(*links_[*index]);
}

void ShmDevice::remove(const MacAddress& mac) {
  const auto index = index_of(mac);
  if (!index) return;
  Link& link = *links_[*index];
  for (std::uint32_t slot = 0; slot < owner_.size() && link.end.slots_out != 0; ++slot) {
    if (owner_[slot] != *index + 1) continue;
    owner_[slot] = 0;
    done_.push_back(slot);
    --link.end.slots_out;
    --slots_out_;
  }
  std::erase(hot_, &link);
  std::erase(touched_, &link);
  std::erase(gone_, mac);
  links_[*index].reset();
  --used_;
}

std::size_t ShmDevice::take_gone(std::span<MacAddress> out) {
  const std::size_t n = std::min(out.size(), gone_.size());
  std::copy_n(gone_.begin(), n, out.begin());
  gone_.erase(gone_.begin(), gone_.begin() + static_cast<std::ptrdiff_t>(n));
  return n;
}

void ShmDevice::lose(Link& link) noexcept {
  if (std::exchange(link.gone, true)) return;
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, link.end.bell.get(), nullptr);
  gone_.push_back(link.mac);
}

void ShmDevice::liar(Link& link) noexcept {
  home_.counters.add(Counter::channel_hostile);
  lose(link);
}

// --- frames ---

std::size_t ShmDevice::refill(std::span<const std::uint32_t> slots) noexcept {
  std::size_t taken = 0;
  for (; taken < slots.size() && lent_.size() < home_.region.slot_count(); ++taken) {
    if (slots[taken] < home_.region.slot_count()) {
      lent_.push_back(slots[taken]);
    } else {
      home_.counters.drop(DropReason::device_bad_descriptor);
    }
  }
  return taken;
}

bool ShmDevice::acceptable(const FrameDesc& frame) const noexcept {
  return home_.region.holds(frame) && frame.length >= kEthernetHeader && frame.length <= info_.max_tx_frame &&
         (frame.flags & kContinues) == 0;
}

ShmDevice::Link* ShmDevice::link_of(const FrameDesc& frame) noexcept {
  MacAddress to;
  std::memcpy(to.bytes.data(), home_.region.bytes_of(frame).data(), to.bytes.size());
  const auto index = index_of(to);
  return index && !links_[*index]->gone ? links_[*index].get() : nullptr;
}

std::size_t ShmDevice::tx_burst(std::span<const FrameDesc> frames) noexcept {
  std::size_t taken = 0;
  for (; taken < frames.size(); ++taken) {
    const FrameDesc& frame = frames[taken];
    if (!acceptable(frame)) {
      home_.counters.drop(DropReason::device_bad_descriptor);
      if (frame.slot < home_.region.slot_count()) done_.push_back(frame.slot);
      continue;
    }
    Link* const link = link_of(frame);
    if (link == nullptr) {
      home_.counters.add(Counter::device_link_down);
      done_.push_back(frame.slot);
      continue;
    }
    if (send(*link, frame) == Sent::full) break;
  }
  ring_touched();
  if (taken < frames.size()) home_.counters.add(Counter::device_tx_busy);
  return taken;
}

ShmDevice::Sent ShmDevice::send(Link& link, const FrameDesc& frame) noexcept {
  LinkEnd& end = link.end;
  const bool in_cell = frame.length <= kInlineBytes;
  const bool shown = frame.slot < owner_.size() && owner_[frame.slot] == 0;
  if (!end.out.room() || (!in_cell && !shown)) {
    if (end.broken()) liar(link);
    if (!link.gone && (in_cell || shown) && waits_for(link)) return Sent::full;
    home_.counters.add(link.gone ? Counter::device_link_down : Counter::local_peer_slow);
    done_.push_back(frame.slot);
    return Sent::dropped;
  }
  link.full_since = {};
  CellHeader header{.length = frame.length,
                    .segment_size = frame.segment_size,
                    .flags = static_cast<std::uint16_t>(frame.flags & kFlagsOfPeers),
                    .l4_offset = frame.l4_offset};
  if (in_cell) {
    end.out.put(header, home_.region.bytes_of(frame));
    done_.push_back(frame.slot);
  } else {
    header.slot = frame.slot;
    header.offset = frame.offset;
    owner_[frame.slot] = static_cast<std::uint32_t>(link.index) + 1;
    ++end.slots_out;
    ++slots_out_;
    end.out.put(header, {});
  }
  home_.counters.add(Counter::device_tx_frames);
  if (!std::exchange(link.touched, true)) touched_.push_back(&link);
  return Sent::yes;
}

// The link is full. False: it has been for long, and others wait behind its frames.
bool ShmDevice::waits_for(Link& link) noexcept {
  const Instant now = monotonic_now();
  if (link.full_since == Instant{}) link.full_since = now;
  return now - link.full_since < kPatience;
}

std::size_t ShmDevice::reclaim(std::span<FrameDesc> out) noexcept {
  if (slots_out_ != 0) {
    for (Link* link : hot_) {
      if (link->end.slots_out != 0) bring_home(*link);
    }
  }
  const std::size_t n = std::min(out.size(), done_.size());
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = FrameDesc{.slot = done_.back()};
    done_.pop_back();
  }
  return n;
}

void ShmDevice::bring_home(Link& link) noexcept {
  std::array<std::uint32_t, kBurst> slots;
  const std::size_t n = link.end.came_home.pop_all(slots);
  for (const std::uint32_t slot : std::span(slots).first(n)) {
    if (slot >= owner_.size() || owner_[slot] != link.index + 1) return liar(link);
    owner_[slot] = 0;
    done_.push_back(slot);
    --link.end.slots_out;
    --slots_out_;
  }
  if (link.end.broken()) liar(link);
}

std::size_t ShmDevice::rx_burst(std::span<FrameDesc> out) noexcept {
  if (asleep_) wake_up();
  std::size_t filled = 0;
  const std::size_t count = hot_.size();
  if (turn_ >= count) turn_ = 0;
  for (std::size_t i = 0; i < count && filled < out.size(); ++i) {
    Link& link = *hot_[turn_ + i < count ? turn_ + i : turn_ + i - count];
    const std::size_t n = receive(link, out.subspan(filled));
    link.quiet_turns = n != 0 ? 0 : link.quiet_turns + 1;
    filled += n;
  }
  ++turn_;
  if (count > kAlwaysLookedAt && filled == 0) cool_down();
  return filled;
}

// While the peer's memory is not known, what lies in it has to wait.
bool ShmDevice::readable(const Link& link) const noexcept {
  if (link.end.in.empty()) return false;
  return link.complete || link.end.in.header().slot == CellHeader::kInline;
}

std::size_t ShmDevice::receive(Link& link, std::span<FrameDesc> out) noexcept {
  LinkEnd& end = link.end;
  std::size_t filled = 0;
  bool sent_home = false;
  while (filled < out.size() && !lent_.empty() && readable(link)) {
    const CellHeader frame = end.in.header();
    const bool in_slot = frame.slot != CellHeader::kInline;
    if (!judge(link, frame)) break;
    out[filled++] = take_in(link, frame);
    if (in_slot && !end.give_home.push(frame.slot)) liar(link);
    sent_home |= in_slot;
    end.in.take();
  }
  if (filled == 0) return 0;
  end.in.publish();
  home_.counters.add(Counter::device_rx_frames, filled);
  if (sent_home) ring(link, kAsleepForSlots);
  return filled;
}

bool ShmDevice::judge(Link& link, const CellHeader& frame) noexcept {
  if (link.gone && link.end.broken()) return false;
  const bool in_cell = frame.slot == CellHeader::kInline;
  if (!in_cell && !link.complete) return false;  // it has become another since it was looked at
  const std::size_t room = home_.region.slot_size() - options_.rx_headroom;
  const bool good = frame.length >= kEthernetHeader && frame.length <= room &&
                    frame.l4_offset < frame.length &&
                    (in_cell ? frame.length <= kInlineBytes : link.end.peer.holds(frame));
  if (!good) liar(link);
  return good;
}

FrameDesc ShmDevice::take_in(Link& link, const CellHeader& frame) noexcept {
  FrameDesc desc{.slot = lent_.back(),
                 .length = frame.length,
                 .offset = options_.rx_headroom,
                 .segment_size = frame.segment_size,
                 .flags = static_cast<std::uint16_t>(frame.flags & kFlagsOfPeers),
                 .l4_offset = frame.l4_offset};
  lent_.pop_back();
  std::byte* const to = home_.region.bytes_of(desc).data();
  const Bytes from =
      frame.slot == CellHeader::kInline ? link.end.in.in_cell() : link.end.peer.bytes_of(frame);
  std::memcpy(to, from.data(), frame.length);
  // To us, from the link, whatever the peer has written.
  std::memcpy(to, info_.mac.bytes.data(), 6);
  std::memcpy(to + 6, link.mac.bytes.data(), 6);
  return desc;
}

// --- bells ---

// After what it is about has been released.
void ShmDevice::ring(Link& link, std::uint32_t reason) noexcept {
  std::atomic<std::uint32_t>& asleep = link.end.out.asleep();
  // Pairs with prepare_sleep(): either the peer sees what was released, or we see that it sleeps.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if ((asleep.load(std::memory_order_relaxed) & reason) == 0) return;
  if ((asleep.exchange(0, std::memory_order_seq_cst) & reason) == 0) return;
  home_.counters.add(Counter::device_tx_kicks);
  const ssize_t sent = ::send(link.end.bell.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  // With a full bell it will wake up anyway.
  if (sent < 0 && errno != EAGAIN && errno != ENOBUFS) lose(link);
}

void ShmDevice::ring_touched() noexcept {
  for (Link* link : touched_) {
    link->touched = false;
    ring(*link, kAsleepForFrames);
  }
  touched_.clear();
}

bool ShmDevice::prepare_sleep() noexcept {
  if (!gone_.empty() || done_.size() > owner_.size() / 2) return false;
  const bool short_of_slots = slots_out_ > owner_.size() / 2;
  const std::uint32_t reason = kAsleepForFrames | (short_of_slots ? kAsleepForSlots : 0);
  for (Link* link : hot_) {
    link->end.in.asleep().store(reason, std::memory_order_relaxed);
    link->announced = true;
  }
  asleep_ = true;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (Link* link : hot_) {
    if (!readable(*link) && !(short_of_slots && !link->end.came_home.empty())) continue;
    wake_up();
    return false;
  }
  return true;
}

// Withdraws the announcements. Who has taken one has rung, or will in a moment: that is read now or after the
// next sleep, which it cuts short; left unread it would cut every sleep short.
void ShmDevice::wake_up() noexcept {
  asleep_ = false;
  const bool all_hot = hot_.size() == used_;
  for (std::size_t i = 0; i < hot_.size(); ++i) {
    Link& link = *hot_[i];
    if (!std::exchange(link.announced, false)) continue;
    if (link.end.in.asleep().exchange(0, std::memory_order_seq_cst) == 0) ++link.owed_rings;
    if (link.owed_rings != 0 && link.complete) hear(link);
  }
  if (!all_hot) (void)look();
}

// Reads the rings that are owed.
void ShmDevice::hear(Link& link) noexcept {
  if (link.gone) return;
  for (int i = 0; i < kMostRings && link.owed_rings != 0; ++i) {
    std::array<std::byte, 64> what;
    const ssize_t n = ::recv(link.end.bell.get(), what.data(), what.size(), MSG_DONTWAIT);
    home_.counters.add(Counter::device_rx_wakeups);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return lose(link);
    --link.owed_rings;
  }
}

bool ShmDevice::look() {
  if (used_ == 0) return false;
  std::array<epoll_event, 32> events;
  const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  home_.counters.add(Counter::device_rx_wakeups);
  for (int i = 0; i < n; ++i) {
    const auto index = static_cast<std::size_t>(events[static_cast<std::size_t>(i)].data.u64);
    if (index >= links_.size() || links_[index] == nullptr) continue;
    Link& link = *links_[index];
    drain(link);
    warm(link);
  }
  return n > 0;
}

// Reads whatever is in the bell: it has been seen to ring, or to end.
void ShmDevice::drain(Link& link) noexcept {
  for (int i = 0; i < kMostRings; ++i) {
    std::array<std::byte, 64> what;
    const ssize_t n = ::recv(link.end.bell.get(), what.data(), what.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return lose(link);
    if (link.owed_rings != 0) --link.owed_rings;
  }
}

void ShmDevice::warm(Link& link) noexcept {
  link.quiet_turns = 0;
  if (!std::exchange(link.cold, false)) return;
  link.end.in.asleep().store(0, std::memory_order_relaxed);
  hot_.push_back(&link);
}

// Leaves one link alone that has been quiet for long, until its peer rings.
void ShmDevice::cool_down() noexcept {
  if (turn_ >= hot_.size()) return;
  Link& link = *hot_[turn_];
  if (link.quiet_turns < kQuietTurns || link.end.slots_out != 0 || !link.complete || link.gone) return;
  link.end.in.asleep().store(kAsleepForFrames, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!link.end.in.empty()) {
    // It may have rung already: read when it is next asked for.
    if (link.end.in.asleep().exchange(0, std::memory_order_seq_cst) == 0) ++link.owed_rings;
    link.quiet_turns = 0;
    return;
  }
  link.cold = true;
  hot_[turn_] = hot_.back();
  hot_.pop_back();
}

}  // namespace netchannel::device
