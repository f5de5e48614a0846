#include "channel/channel.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/mapping.hpp"

namespace netchannel {
namespace {

constexpr std::uint32_t kCommandRing = 256;
constexpr std::uint32_t kMostSlots = 1u << 31;

}  // namespace

Result<std::unique_ptr<Doorbell>> Doorbell::open() {
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd) return fail(ErrorCode::system, "cannot make an eventfd; raise the limit of open files", errno);
  return std::unique_ptr<Doorbell>(new Doorbell(std::move(fd)));
}

void Doorbell::announce_sleep() noexcept {
  announced_ = true;
  sleeping_.store(true, std::memory_order_relaxed);
  // Pairs with ring(): the consumer looks at its rings after this, and what it does not see there will be
  // rung.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Doorbell::awake() noexcept {
  if (!std::exchange(announced_, false)) return;
  if (!sleeping_.exchange(false, std::memory_order_seq_cst)) ++owed_;
  if (owed_ == 0) return;
  // The driver's write may come only after this; then it is read after the next sleep, which it cuts short.
  // Left unread it would cut every sleep short.
  std::uint64_t count = 0;
  if (::read(fd_.get(), &count, sizeof count) == sizeof count) owed_ -= std::min(owed_, count);
}

bool Doorbell::ring() noexcept {
  // Pairs with announce_sleep(): either the consumer sees what was released before, or we see that it sleeps.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!sleeping_.load(std::memory_order_relaxed) || !sleeping_.exchange(false, std::memory_order_seq_cst))
    return false;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto put = ::write(fd_.get(), &one, sizeof one);
  return true;
}

struct Channel::Rings {
  ChannelOptions options;
  Mapping mapping;
  std::unique_ptr<Doorbell> bell;
  MutableBytes rx, recycle, tx, reclaimed, commands, replies;
};

Channel::Channel() : rings_(std::make_unique<Rings>()) {}
Channel::~Channel() = default;
Doorbell& Channel::bell() { return *rings_->bell; }

Result<std::unique_ptr<Channel>> Channel::open(const ChannelOptions& given) {
  std::unique_ptr<Channel> channel(new Channel);
  Rings& rings = *channel->rings_;
  rings.options = given;
  if (std::max(given.rx_slots, given.tx_slots) > kMostSlots) {
    return fail(ErrorCode::invalid_argument, "a channel has at most 2147483648 slots in each direction");
  }
  // Coming home never fails: these rings hold every slot there is.
  rings.options.rx_slots = std::bit_ceil(given.rx_slots);
  rings.options.tx_slots = std::bit_ceil(given.tx_slots);
  const ChannelOptions& o = rings.options;
  const std::size_t size =
      ring::memory_size<FrameDesc>(o.rx_ring) + ring::memory_size<std::uint32_t>(o.rx_slots) +
      ring::memory_size<FrameDesc>(o.tx_ring) + ring::memory_size<std::uint32_t>(o.tx_slots) +
      ring::memory_size<FlowCommand>(kCommandRing) + ring::memory_size<FlowReply>(kCommandRing);
  auto mapping = Mapping::anonymous(size);
  if (!mapping) return tl::unexpected(mapping.error());
  auto bell = Doorbell::open();
  if (!bell) return tl::unexpected(bell.error());
  rings.mapping = std::move(*mapping);
  rings.bell = std::move(*bell);

  MutableBytes rest = rings.mapping.bytes();
  Result<void> formatted;
  const auto carve = [&]<class T>(std::uint32_t capacity, MutableBytes& out, T) {
    out = rest.first(ring::memory_size<T>(capacity));
    rest = rest.subspan(out.size());
    if (auto done = ring::format<T>(out, capacity); !done) formatted = done;
  };
  carve(o.rx_ring, rings.rx, FrameDesc{});
  carve(o.rx_slots, rings.recycle, std::uint32_t{});
  carve(o.tx_ring, rings.tx, FrameDesc{});
  carve(o.tx_slots, rings.reclaimed, std::uint32_t{});
  carve(kCommandRing, rings.commands, FlowCommand{});
  carve(kCommandRing, rings.replies, FlowReply{});
  if (!formatted) return tl::unexpected(formatted.error());
  return channel;
}

ConsumerEnd Channel::take_consumer() {
  const Rings& r = *rings_;
  return {.rx = {r.rx, r.options.rx_ring},
          .recycle = {r.recycle, r.options.rx_slots},
          .tx = {r.tx, r.options.tx_ring},
          .reclaimed = {r.reclaimed, r.options.tx_slots},
          .commands = {r.commands, kCommandRing},
          .replies = {r.replies, kCommandRing},
          .bell = r.bell.get()};
}

DriverEnd Channel::take_driver() {
  const Rings& r = *rings_;
  return {.rx = {r.rx, r.options.rx_ring},
          .recycle = {r.recycle, r.options.rx_slots},
          .tx = {r.tx, r.options.tx_ring},
          .reclaimed = {r.reclaimed, r.options.tx_slots},
          .commands = {r.commands, kCommandRing},
          .replies = {r.replies, kCommandRing},
          .bell = r.bell.get()};
}

}  // namespace netchannel
