#include "ring/spsc.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <numeric>
#include <thread>
#include <vector>

#include "base/mapping.hpp"
#include "base/unique_fd.hpp"

namespace netchannel::ring {
namespace {

// Ring memory and both ends of it.
template <class T>
struct Pair {
  explicit Pair(std::uint32_t capacity) : Pair(capacity, *Mapping::anonymous(memory_size<T>(capacity))) {}
  Pair(std::uint32_t capacity, Mapping given) : mapping(std::move(given)) {
    EXPECT_TRUE(format<T>(mapping.bytes(), capacity));
    producer = Producer<T>(mapping.bytes(), capacity);
    consumer = Consumer<T>(mapping.bytes(), capacity);
  }
  // What a peer in another process could write at any time.
  Header& shared() { return *reinterpret_cast<Header*>(mapping.bytes().data()); }

  Mapping mapping;
  Producer<T> producer;
  Consumer<T> consumer;
};

struct Item {
  std::uint64_t number = 0;
  std::uint64_t check = 0;  // ~number: a torn or stale item shows
};

TEST(Ring, YieldsItemsInOrder) {
  Pair<int> ring(8);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(ring.producer.push(i));
  std::array<int, 8> out{};
  ASSERT_EQ(ring.consumer.pop_all(out), 5u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], i);
  EXPECT_TRUE(ring.consumer.empty());
}

TEST(Ring, IsEmptyAtFirst) {
  Pair<int> ring(8);
  EXPECT_TRUE(ring.consumer.empty());
  EXPECT_EQ(ring.consumer.peek(8), 0u);
}

TEST(Ring, TakesExactlyItsCapacityAndThenNothingUntilReleased) {
  Pair<int> ring(4);
  const std::array<int, 6> values{0, 1, 2, 3, 4, 5};
  EXPECT_EQ(ring.producer.push_all(values), 4u);
  EXPECT_FALSE(ring.producer.push(9));
  EXPECT_EQ(ring.consumer.peek(4), 4u);
  EXPECT_FALSE(ring.producer.push(9)) << "peeked is not released";
  ring.consumer.release(1);
  EXPECT_TRUE(ring.producer.push(4));
  EXPECT_FALSE(ring.producer.push(9));
  std::array<int, 4> out{};
  ASSERT_EQ(ring.consumer.pop_all(out), 4u);
  EXPECT_EQ(out, (std::array<int, 4>{1, 2, 3, 4}));
}

TEST(Ring, ACapacityOfOneWorks) {
  Pair<int> ring(1);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(ring.producer.push(i));
    ASSERT_FALSE(ring.producer.push(i));
    ASSERT_EQ(ring.consumer.peek(1), 1u);
    EXPECT_EQ(ring.consumer.read(0), i);
    ring.consumer.release(1);
    EXPECT_TRUE(ring.consumer.empty());
  }
}

TEST(Ring, ReservedItemsAreSeenOnlyOnceSubmittedAndAllAtOnce) {
  Pair<int> ring(8);
  ASSERT_EQ(ring.producer.reserve(3), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) ring.producer.write(i, static_cast<int>(i));
  EXPECT_TRUE(ring.consumer.empty());
  ring.producer.submit(3);
  EXPECT_EQ(ring.consumer.peek(8), 3u);
}

TEST(Ring, AnUnsubmittedReservationCanBeGivenUp) {
  Pair<int> ring(4);
  ASSERT_EQ(ring.producer.reserve(4), 4u);
  ring.producer.write(0, 7);
  ring.producer.submit(1);
  EXPECT_EQ(ring.producer.reserve(4), 3u);
  EXPECT_EQ(ring.consumer.peek(4), 1u);
}

// The slots are not written here, so that going round 32 bits takes milliseconds.
TEST(Ring, IndicesWrapAroundThirtyTwoBits) {
  constexpr std::uint32_t kCapacity = 1u << 20;
  Pair<std::uint8_t> ring(kCapacity);
  for (int i = 0; i < 4095; ++i) {
    ASSERT_EQ(ring.producer.reserve(kCapacity), kCapacity);
    ring.producer.submit(kCapacity);
    ASSERT_EQ(ring.consumer.peek(kCapacity), kCapacity);
    ring.consumer.release(kCapacity);
  }
  ASSERT_EQ(ring.shared().produced.load(), 0u - kCapacity);
  // Full across the wrap, with half of it released before.
  ASSERT_EQ(ring.producer.reserve(kCapacity / 2), kCapacity / 2);
  ring.producer.submit(kCapacity / 2);
  ASSERT_EQ(ring.consumer.peek(kCapacity), kCapacity / 2);
  ring.consumer.release(kCapacity / 2);
  ASSERT_EQ(ring.producer.reserve(kCapacity + 1), kCapacity);
  ring.producer.write(kCapacity / 2 - 1, 1);
  ring.producer.write(kCapacity / 2, 2);
  ring.producer.submit(kCapacity);
  ASSERT_EQ(ring.shared().produced.load(), kCapacity / 2);
  EXPECT_EQ(ring.producer.reserve(1), 0u);
  ASSERT_EQ(ring.consumer.peek(kCapacity), kCapacity);
  EXPECT_EQ(ring.consumer.read(kCapacity / 2 - 1), 1);
  EXPECT_EQ(ring.consumer.read(kCapacity / 2), 2);
  ring.consumer.release(kCapacity);
  EXPECT_TRUE(ring.consumer.empty());
  EXPECT_FALSE(ring.producer.broken());
  EXPECT_FALSE(ring.consumer.broken());
}

TEST(Ring, TheProducerReadsTheOtherIndexOnlyWhenItsCopySaysFull) {
  Pair<int> ring(4);
  ASSERT_EQ(ring.producer.reserve(1), 1u);
  ring.shared().consumed.store(1000);  // impossible, but not looked at yet
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring.producer.push(i));
  EXPECT_FALSE(ring.producer.broken());
  EXPECT_FALSE(ring.producer.push(4));
  EXPECT_TRUE(ring.producer.broken());
}

TEST(Ring, TheConsumerReadsTheOtherIndexOnlyWhenItsCopySaysTooFew) {
  Pair<int> ring(4);
  for (int i = 0; i < 3; ++i) ring.producer.push(i);
  ASSERT_EQ(ring.consumer.peek(1), 1u);  // the copy says three now
  ring.shared().produced.store(1000);
  EXPECT_EQ(ring.consumer.peek(3), 3u);
  ring.consumer.release(3);
  EXPECT_FALSE(ring.consumer.broken());
  EXPECT_EQ(ring.consumer.peek(1), 0u);
  EXPECT_TRUE(ring.consumer.broken());
}

TEST(Ring, AProducersImpossibleIndexBreaksTheConsumerForGood) {
  for (const std::uint32_t impossible : {5u, 0x80000000u, 0xffffffffu}) {
    Pair<int> ring(4);
    ring.shared().produced.store(impossible);
    EXPECT_EQ(ring.consumer.peek(4), 0u) << impossible;
    EXPECT_TRUE(ring.consumer.broken());
    ring.shared().produced.store(2);  // too late to repent
    EXPECT_EQ(ring.consumer.peek(4), 0u);
    std::array<int, 4> out{};
    EXPECT_EQ(ring.consumer.pop_all(out), 0u);
    EXPECT_TRUE(ring.consumer.empty());
  }
}

TEST(Ring, AConsumersImpossibleIndexBreaksTheProducerForGood) {
  for (const std::uint32_t impossible : {1u, 0x80000000u, 0xffffffffu - 4}) {
    Pair<int> ring(4);
    ring.shared().consumed.store(impossible);
    const std::array<int, 6> values{};
    EXPECT_EQ(ring.producer.push_all(values), 0u) << impossible;
    EXPECT_TRUE(ring.producer.broken());
    ring.shared().consumed.store(0);
    EXPECT_FALSE(ring.producer.push(1));
    EXPECT_EQ(ring.producer.reserve(4), 0u);
  }
}

TEST(Ring, AnIndexThatGoesBackWithinTheRingDoesNoHarm) {
  Pair<int> ring(8);
  for (int i = 0; i < 6; ++i) ring.producer.push(i);
  ASSERT_EQ(ring.consumer.peek(6), 6u);
  ring.consumer.release(4);
  ring.shared().produced.store(5);  // was 6; one is left of the two
  EXPECT_LE(ring.consumer.peek(8), 2u);
  ring.shared().produced.store(3);  // behind what was released
  EXPECT_EQ(ring.consumer.peek(8), 0u);
  EXPECT_TRUE(ring.consumer.broken());
}

TEST(Ring, TheCapacityInSharedMemoryIsNotTrusted) {
  Pair<int> ring(4);
  ring.shared().capacity = 1u << 30;
  const std::array<int, 6> values{};
  EXPECT_EQ(ring.producer.push_all(values), 4u);
  ring.shared().produced.store(5);
  EXPECT_EQ(ring.consumer.peek(5), 0u);
  EXPECT_TRUE(ring.consumer.broken());
}

TEST(Ring, AnEndCanMoveAndGoOn) {
  Pair<int> ring(4);
  ring.producer.push(1);
  ring.producer.push(2);
  ASSERT_EQ(ring.consumer.peek(1), 1u);
  ring.consumer.release(1);
  Producer<int> producer(std::move(ring.producer));
  Consumer<int> consumer(std::move(ring.consumer));
  EXPECT_TRUE(producer.push(3));
  std::array<int, 4> out{};
  ASSERT_EQ(consumer.pop_all(out), 2u);
  EXPECT_EQ(out[0], 2);
  EXPECT_EQ(out[1], 3);
}

TEST(Ring, FormatRefusesABadCapacityOrTooLittleMemory) {
  auto mapping = *Mapping::anonymous(4096);
  EXPECT_FALSE(format<int>(mapping.bytes(), 0));
  EXPECT_FALSE(format<int>(mapping.bytes(), 3));
  EXPECT_FALSE(format<int>(mapping.bytes(), 1024));
  EXPECT_TRUE(format<int>(mapping.bytes(), 512));
  EXPECT_FALSE(format<int>(MutableBytes{}, 1));
}

TEST(Ring, TheIndicesAndTheSlotsStandOnLinesOfTheirOwn) {
  alignas(kCacheLine) Header header{};
  const auto distance = [&](const void* a, const void* b) {
    return static_cast<const char*>(b) - static_cast<const char*>(a);
  };
  EXPECT_GE(distance(&header.item_size, &header.produced), 60);
  EXPECT_EQ(distance(&header.produced, &header.consumed), 64);
  EXPECT_EQ(distance(&header.consumed, &header + 1), 64);
  EXPECT_EQ(memory_size<std::uint32_t>(1), 4 * kCacheLine);
}

// Sends numbers 0 to count - 1 in bursts of changing size.
void produce(Producer<Item>& producer, std::uint64_t count) {
  std::uint64_t next = 0;
  for (std::uint32_t burst = 1; next < count; burst = burst % 37 + 1) {
    const auto n = producer.reserve(static_cast<std::uint32_t>(std::min<std::uint64_t>(burst, count - next)));
    for (std::uint32_t i = 0; i < n; ++i) producer.write(i, {next + i, ~(next + i)});
    if (n == 0) {
      std::this_thread::yield();
    } else {
      producer.submit(n);
    }
    next += n;
  }
}

// How many of the numbers 0 to count - 1 came in order and whole before the first fault.
std::uint64_t consume(Consumer<Item>& consumer, std::uint64_t count) {
  std::uint64_t next = 0;
  for (std::uint32_t burst = 1; next < count && !consumer.broken(); burst = burst % 29 + 1) {
    const auto n = consumer.peek(burst);
    for (std::uint32_t i = 0; i < n; ++i) {
      const Item item = consumer.read(i);
      if (item.number != next + i || item.check != ~item.number) return next + i;
    }
    if (n == 0) {
      std::this_thread::yield();
    } else {
      consumer.release(n);
    }
    next += n;
  }
  return next;
}

TEST(Ring, TwoThreadsExchangeMillionsOfItemsInOrder) {
  constexpr std::uint64_t kCount = 3'000'000;
  for (const std::uint32_t capacity : {1u, 64u, 4096u}) {
    Pair<Item> ring(capacity);
    const std::uint64_t count =
        capacity == 1 ? kCount / 100 : kCount;  // each item of a ring of one is a handover
    std::uint64_t received = 0;
    std::thread consumer([&] { received = consume(ring.consumer, count); });
    produce(ring.producer, count);
    consumer.join();
    EXPECT_EQ(received, count) << "capacity " << capacity;
    EXPECT_TRUE(ring.consumer.empty());
    EXPECT_FALSE(ring.producer.broken());
  }
}

TEST(Ring, TwoProcessesExchangeItemsThroughAMemfd) {
  constexpr std::uint32_t kCapacity = 256;
  constexpr std::uint64_t kCount = 500'000;
  const UniqueFd memory(*open_memfd("test-ring", memory_size<Item>(kCapacity)));
  {
    auto mapping = *Mapping::of_fd(memory.get(), memory_size<Item>(kCapacity));
    ASSERT_TRUE(format<Item>(mapping.bytes(), kCapacity));
  }
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // A mapping of its own, at another address.
    auto mapping = *Mapping::of_fd(memory.get(), memory_size<Item>(kCapacity));
    Producer<Item> producer(mapping.bytes(), kCapacity);
    produce(producer, kCount);
    ::_exit(producer.broken() ? 1 : 0);
  }
  auto mapping = *Mapping::of_fd(memory.get(), memory_size<Item>(kCapacity));
  Consumer<Item> consumer(mapping.bytes(), kCapacity);
  EXPECT_EQ(consume(consumer, kCount), kCount);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace netchannel::ring
