#include "channel/channel.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <numeric>
#include <thread>
#include <vector>

namespace netchannel {
namespace {

bool readable(int fd, int timeout_ms = 0) {
  pollfd poller{fd, POLLIN, 0};
  return ::poll(&poller, 1, timeout_ms) == 1;
}

std::unique_ptr<Channel> open_channel(const ChannelOptions& options = {}) {
  auto channel = Channel::open(options);
  EXPECT_TRUE(channel);
  return std::move(*channel);
}

TEST(Channel, RefusesRingsThatAreNoPowersOfTwo) {
  for (const ChannelOptions& bad :
       {ChannelOptions{.rx_ring = 3}, ChannelOptions{.tx_ring = 0}, ChannelOptions{.rx_slots = 0x80000001},
        ChannelOptions{.tx_slots = 0xffffffff}}) {
    const auto channel = Channel::open(bad);
    ASSERT_FALSE(channel);
    EXPECT_EQ(channel.error().code, ErrorCode::invalid_argument);
  }
}

TEST(Channel, EachRingLeadsToItsOwnOtherEnd) {
  const auto channel = open_channel();
  DriverEnd driver = channel->take_driver();
  ConsumerEnd consumer = channel->take_consumer();
  ASSERT_TRUE(driver.rx.push({.slot = 1}));
  ASSERT_TRUE(consumer.recycle.push(2));
  ASSERT_TRUE(consumer.tx.push({.slot = 3}));
  ASSERT_TRUE(driver.reclaimed.push(4));
  ASSERT_TRUE(consumer.commands.push({.tag = 5, .flow = {}}));
  ASSERT_TRUE(driver.replies.push({.tag = 6}));
  const auto only = []<class T>(ring::Consumer<T>& from) {
    EXPECT_EQ(from.peek(2), 1u);
    return from.read(0);
  };
  EXPECT_EQ(only(consumer.rx).slot, 1u);
  EXPECT_EQ(only(driver.recycle), 2u);
  EXPECT_EQ(only(driver.tx).slot, 3u);
  EXPECT_EQ(only(consumer.reclaimed), 4u);
  EXPECT_EQ(only(driver.commands).tag, 5u);
  EXPECT_EQ(only(consumer.replies).tag, 6u);
}

TEST(Channel, EverySlotThereIsCanBeOnItsWayHomeAtOnce) {
  const auto channel = open_channel({.rx_ring = 4, .tx_ring = 4, .rx_slots = 1000, .tx_slots = 300});
  DriverEnd driver = channel->take_driver();
  ConsumerEnd consumer = channel->take_consumer();
  std::vector<std::uint32_t> rx(1000), tx(300);
  std::iota(rx.begin(), rx.end(), 0u);
  std::iota(tx.begin(), tx.end(), 1000u);
  EXPECT_EQ(consumer.recycle.push_all(rx), 1000u);
  EXPECT_EQ(driver.reclaimed.push_all(tx), 300u);
  std::vector<std::uint32_t> home(1000);
  EXPECT_EQ(driver.recycle.pop_all(home), 1000u);
  EXPECT_EQ(home, rx);
}

// The driver's part is played by the test: it lends what the consumer has sent home, and sees nothing lost.
TEST(Channel, SlotsComeHomeHoweverLongTheConsumerKeepsThem) {
  constexpr std::uint32_t kSlots = 64;
  const auto channel = open_channel({.rx_ring = 16, .tx_ring = 16, .rx_slots = kSlots, .tx_slots = kSlots});
  auto region = *FrameRegion::open({.slot_count = 2 * kSlots});
  DriverEnd driver = channel->take_driver();
  ConsumerEnd consumer = channel->take_consumer();
  FramePool rx_pool(*region, 0, kSlots, FramePool::Start::all_lent);
  FramePool tx_pool(*region, kSlots, kSlots, FramePool::Start::all_free);
  std::vector<std::uint32_t> at_driver(kSlots);
  std::iota(at_driver.begin(), at_driver.end(), 0u);
  std::vector<Frame> kept;

  for (int round = 0; round < 1000; ++round) {
    while (!at_driver.empty() && driver.rx.push({.slot = at_driver.back(), .length = 60}))
      at_driver.pop_back();

    std::array<FrameDesc, 16> burst;
    const std::size_t received = consumer.rx.pop_all(burst);
    for (std::size_t i = 0; i < received; ++i) {
      auto frame = rx_pool.adopt(burst[i]);
      ASSERT_TRUE(frame);
      auto answer = tx_pool.allocate(64);
      if (answer && consumer.tx.reserve(1) == 1) consumer.tx.push(tx_pool.lend(*answer));
      kept.push_back(std::move(*frame));
    }
    if (round % 3 == 0) kept.clear();
    std::array<std::uint32_t, kSlots> home;
    const std::size_t n = rx_pool.take_free(home);
    ASSERT_EQ(consumer.recycle.push_all(std::span(home).first(n)), n);

    std::array<FrameDesc, 16> sent;
    const std::size_t taken = driver.tx.pop_all(sent);
    for (std::size_t i = 0; i < taken; ++i) ASSERT_TRUE(driver.reclaimed.push(sent[i].slot));
    std::array<std::uint32_t, kSlots> done;
    const std::size_t reclaimed = consumer.reclaimed.pop_all(done);
    for (std::size_t i = 0; i < reclaimed; ++i) ASSERT_TRUE(tx_pool.reclaim(done[i]));
    const std::size_t recycled = driver.recycle.pop_all(home);
    at_driver.insert(at_driver.end(), home.begin(), home.begin() + static_cast<std::ptrdiff_t>(recycled));
  }
  EXPECT_EQ(at_driver.size() + kept.size(), kSlots);
  EXPECT_EQ(tx_pool.free_count(), kSlots);
}

TEST(Doorbell, IsNotWrittenWhileTheConsumerIsAwake) {
  const auto channel = open_channel();
  Doorbell& bell = channel->bell();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(bell.ring());
  EXPECT_FALSE(readable(bell.fd()));
}

TEST(Doorbell, IsWrittenOnceForEachSleep) {
  const auto channel = open_channel();
  Doorbell& bell = channel->bell();
  for (int i = 0; i < 3; ++i) {
    bell.announce_sleep();
    EXPECT_FALSE(readable(bell.fd()));
    EXPECT_TRUE(bell.ring());
    EXPECT_FALSE(bell.ring()) << "somebody is on the way already";
    EXPECT_TRUE(readable(bell.fd()));
    bell.awake();
    EXPECT_FALSE(readable(bell.fd()));
  }
}

TEST(Doorbell, ASleepThatWasCalledOffLeavesNothingBehind) {
  const auto channel = open_channel();
  Doorbell& bell = channel->bell();
  bell.announce_sleep();
  bell.awake();  // there was work after all
  EXPECT_FALSE(bell.ring());
  EXPECT_FALSE(readable(bell.fd()));
}

// The driver has taken the announcement and writes only after the consumer is awake and has found nothing to
// drain.
TEST(Doorbell, AWriteThatComesLateDisturbsOneSleepAtMost) {
  const auto channel = open_channel();
  Doorbell& bell = channel->bell();
  std::uint64_t count = 0;
  bell.announce_sleep();
  ASSERT_TRUE(bell.ring());
  ASSERT_EQ(::read(bell.fd(), &count, sizeof count), 8);  // not written yet
  bell.awake();
  ASSERT_EQ(::write(bell.fd(), &count, sizeof count), 8);  // now it is

  bell.announce_sleep();
  EXPECT_TRUE(readable(bell.fd()));
  bell.awake();
  bell.announce_sleep();
  EXPECT_FALSE(readable(bell.fd())) << "the consumer could never sleep again";
  EXPECT_TRUE(bell.ring()) << "and the next wake-up is not lost";
  EXPECT_TRUE(readable(bell.fd()));
  bell.awake();
  EXPECT_FALSE(readable(bell.fd()));
}

constexpr std::uint64_t kFinished = ~std::uint64_t{0};  // the consumer has all, or has given up

struct Sleeper {
  std::uint64_t received = 0;
  std::uint64_t sleeps = 0;
  bool lost_wakeup = false;
};

// Looks often before it really sleeps: going to sleep and waking take so long that the driver would seldom
// meet the consumer in the few nanoseconds that matter.
bool rung(int fd) {
  for (int i = 0; i < 300; ++i) {
    if (readable(fd)) return true;
  }
  return readable(fd, 20'000);
}

// Takes `count` numbers from the channel and sleeps whenever there is none.
Sleeper consume(ConsumerEnd& end, std::uint64_t count, std::atomic<std::uint64_t>& progress) {
  Sleeper out;
  std::array<FrameDesc, 32> burst;
  while (out.received < count && !out.lost_wakeup) {
    const std::size_t n = end.rx.pop_all(burst);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(burst[i].slot, out.received + i);
    out.received += n;
    progress.store(out.received, std::memory_order_release);
    if (n != 0) continue;
    end.bell->announce_sleep();
    if (end.rx.empty()) {
      ++out.sleeps;
      out.lost_wakeup = !rung(end.bell->fd());
    }
    end.bell->awake();
  }
  progress.store(kFinished, std::memory_order_release);
  return out;
}

// Waits until the consumer has `count` numbers; busily at first, since what is tested is a matter of
// nanoseconds.
void await(const std::atomic<std::uint64_t>& progress, std::uint64_t count) {
  for (int turns = 0; progress.load(std::memory_order_acquire) < count; ++turns) {
    if (turns > 1000) std::this_thread::yield();
  }
}

TEST(Doorbell, LosesNoWakeUpBetweenTwoThreads) {
  const auto channel = open_channel({.rx_ring = 64});
  DriverEnd driver = channel->take_driver();
  ConsumerEnd end = channel->take_consumer();
  constexpr std::uint64_t kCount = 50'000;
  std::atomic<std::uint64_t> progress{0};
  Sleeper sleeper;
  std::thread consumer([&] { sleeper = consume(end, kCount, progress); });
  std::uint64_t writes = 0;
  for (std::uint64_t i = 0; i < kCount && progress.load(std::memory_order_acquire) != kFinished; ++i) {
    // In threes, each a little later after the one before than the last time: the second or third of some
    // come just when the consumer falls asleep, and nothing rings again for the third.
    if (i % 3 == 0) await(progress, i);
    for (std::uint64_t pause = i % 499; pause > 0; --pause)
      std::atomic_signal_fence(std::memory_order_seq_cst);
    ASSERT_TRUE(driver.rx.push({.slot = static_cast<std::uint32_t>(i)}));
    if (driver.bell->ring()) ++writes;
  }
  consumer.join();
  EXPECT_FALSE(sleeper.lost_wakeup);
  EXPECT_EQ(sleeper.received, kCount);
  EXPECT_GT(sleeper.sleeps, 0u);
  EXPECT_LE(writes, kCount) << "one for each push at most";
}

}  // namespace
}  // namespace netchannel
