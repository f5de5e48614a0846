#include "netchannel/wire/checksum.hpp"

#include <gtest/gtest.h>

#include <random>

#include "packets.hpp"

namespace netchannel::wire {
namespace {

using test::Buffer;

Buffer random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Buffer out(count);
  for (auto& byte : out) byte = std::byte{static_cast<std::uint8_t>(random())};
  return out;
}

TEST(Checksum, AgreesWithTheExampleOfRfc1071) {
  const Buffer bytes = test::hex("0001 f203 f4f5 f6f7");
  EXPECT_EQ(fold(checksum_scalar(bytes)), 0xddf2);
  EXPECT_EQ(fold(checksum_fast(bytes)), 0xddf2);
  EXPECT_EQ(checksum(checksum_scalar(bytes)), 0x220d);
}

TEST(Checksum, AnOddLastByteIsTheHighHalfOfAWord) {
  EXPECT_EQ(fold(checksum_scalar(test::hex("1234 56"))), 0x1234 + 0x5600);
  EXPECT_EQ(fold(checksum_fast(test::hex("1234 56"))), 0x1234 + 0x5600);
}

TEST(Checksum, FastAgreesWithScalarForEveryLengthAndAlignment) {
  const Buffer bytes = random_bytes(400, 1);
  for (std::size_t align = 0; align < 64; ++align) {
    for (std::size_t length = 0; length <= 300; ++length) {
      const Bytes part = Bytes(bytes).subspan(align, length);
      ASSERT_EQ(fold(checksum_fast(part)), fold(checksum_scalar(part))) << align << "+" << length;
    }
  }
}

TEST(Checksum, FastAgreesWithScalarOnExtremeBytesAndLongRuns) {
  for (const unsigned value : {0x00u, 0x01u, 0x80u, 0xfeu, 0xffu}) {
    for (const std::size_t length : {1u, 2u, 31u, 32u, 33u, 1499u, 1500u, 9000u, 65535u, 65536u}) {
      const Buffer bytes(length, static_cast<std::byte>(value));
      ASSERT_EQ(fold(checksum_fast(bytes)), fold(checksum_scalar(bytes))) << value << " x " << length;
    }
  }
}

TEST(Checksum, CopyMovesEveryByteAndAgreesWithScalar) {
  const Buffer bytes = random_bytes(400, 2);
  for (std::size_t align = 0; align < 16; ++align) {
    for (std::size_t length = 0; length <= 300; ++length) {
      Buffer to(length + 2, std::byte{0xaa});
      const Bytes from = Bytes(bytes).subspan(align, length);
      const PartialSum sum = copy_and_checksum(MutableBytes(to).subspan(1, length), from);
      ASSERT_EQ(fold(sum), fold(checksum_scalar(from)));
      ASSERT_TRUE(std::equal(from.begin(), from.end(), to.begin() + 1));
      ASSERT_EQ(to.front(), std::byte{0xaa});
      ASSERT_EQ(to.back(), std::byte{0xaa});
    }
  }
}

TEST(Checksum, PartsPutTogetherAtEveryOffsetAgreeWithTheWhole) {
  const Buffer bytes = random_bytes(120, 3);
  for (std::size_t first = 0; first <= bytes.size(); ++first) {
    for (std::size_t second = first; second <= bytes.size(); second += 7) {
      PartialSum sum = checksum_fast(Bytes(bytes).first(first));
      sum.add(checksum_fast(Bytes(bytes).subspan(second)), second);  // in any order
      sum.add(checksum_scalar(Bytes(bytes).subspan(first, second - first)), first);
      ASSERT_EQ(fold(sum), fold(checksum_scalar(bytes))) << first << " " << second;
    }
  }
}

TEST(Checksum, DataWithItsChecksumSumsToAllOnes) {
  Buffer bytes = random_bytes(64, 4);
  store_be16(bytes, 10, 0);
  store_be16(bytes, 10, checksum(checksum_scalar(bytes)));
  EXPECT_EQ(fold(checksum_fast(bytes)), 0xffff);
}

TEST(Checksum, IsZeroOnlyForNothingButZeroBytes) {
  EXPECT_EQ(fold(checksum_fast(Buffer(40))), 0);
  EXPECT_EQ(fold(checksum_fast(test::hex("ffff 0000 ffff"))), 0xffff);
}

TEST(Checksum, PseudoHeaderOfIpv4IsThatOfRfc768) {
  const Buffer written = test::hex("0a090001 0a090002 00 11 000d");
  EXPECT_EQ(fold(pseudo_header(test::kOur4, test::kPeer4, Protocol::udp, 13)),
            fold(checksum_scalar(written)));
}

TEST(Checksum, PseudoHeaderOfIpv6IsThatOfRfc8200) {
  const Buffer written =
      test::hex("fd000009 00000000 00000000 00000001 fd000009 00000000 00000000 00000002 0001000d 000000 3a");
  EXPECT_EQ(fold(pseudo_header(test::kOur6, test::kPeer6, Protocol::icmpv6, 0x1000d)),
            fold(checksum_scalar(written)));
}

TEST(Checksum, PseudoHeaderAgreesWithWrittenBytesForManyAddresses) {
  std::mt19937 random(5);
  for (int i = 0; i < 10000; ++i) {
    const auto a = static_cast<std::uint32_t>(random()), b = static_cast<std::uint32_t>(random());
    Buffer written(12);
    store_be32(written, 0, a);
    store_be32(written, 4, b);
    store_be16(written, 8, 6);
    store_be16(written, 10, static_cast<std::uint16_t>(i));
    const PartialSum sum =
        pseudo_header(IpAddress::v4(a), IpAddress::v4(b), Protocol::tcp, static_cast<std::size_t>(i));
    ASSERT_EQ(fold(sum), fold(checksum_scalar(written)));
  }
}

TEST(Checksum, UpdateAgreesWithSummingAgain) {
  std::mt19937 random(6);
  for (int i = 0; i < 10000; ++i) {
    Buffer bytes = random_bytes(20, static_cast<unsigned>(i));
    const std::uint16_t before = checksum(checksum_scalar(bytes));
    const std::uint16_t old_word = load_be16(bytes, 8), new_word = static_cast<std::uint16_t>(random());
    store_be16(bytes, 8, new_word);
    ASSERT_EQ(update_checksum(before, old_word, new_word), checksum(checksum_scalar(bytes)));
  }
}

TEST(Checksum, RecognisesAPartialChecksum) {
  const PartialSum pseudo = pseudo_header(test::kOur4, test::kPeer4, Protocol::udp, 13);
  EXPECT_TRUE(is_partial_checksum(fold(pseudo), pseudo));
  EXPECT_FALSE(is_partial_checksum(static_cast<std::uint16_t>(fold(pseudo) + 1), pseudo));
}

static_assert(fold(checksum_scalar({})) == 0);
static_assert(fold(pseudo_header(test::kOur4, test::kPeer4, Protocol::udp, 13)) == 0x1433);

}  // namespace
}  // namespace netchannel::wire
