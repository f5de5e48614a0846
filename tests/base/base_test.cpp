// The small things of base: errors, mappings, descriptors, bytes, time.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <set>

#include "base/mapping.hpp"
#include "base/unique_fd.hpp"
#include "netchannel/bytes.hpp"
#include "netchannel/drop_reason.hpp"
#include "netchannel/error.hpp"
#include "netchannel/time.hpp"

namespace netchannel {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }
int open_null() { return ::open("/dev/null", O_RDWR | O_CLOEXEC); }

TEST(Error, EachCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  const auto count = static_cast<std::uint16_t>(ErrorCode::system) + 1;
  for (int code = 0; code < count; ++code) names.insert(to_string(static_cast<ErrorCode>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(count));
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_EQ(to_string(static_cast<ErrorCode>(count)), "unknown");
}

TEST(Error, DescribesItselfInOneLine) {
  EXPECT_EQ(describe(Error{ErrorCode::closed, 0, "the socket is closed"}), "the socket is closed");
  EXPECT_EQ(describe(Error{ErrorCode::not_permitted, EPERM, "cannot"}),
            "cannot (EPERM: Operation not permitted)");
  EXPECT_EQ(describe(Error{ErrorCode::system, 99999, "odd"}), "odd (errno: unknown)");
}

TEST(Error, TravelsInAResult) {
  const auto failing = []() -> Result<int> { return fail(ErrorCode::no_memory, "none left", ENOMEM); };
  const auto result = failing();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::no_memory);
  EXPECT_EQ(result.error().sys_errno, ENOMEM);
  EXPECT_TRUE(std::is_trivially_copyable_v<Error>);
}

TEST(UniqueFd, ClosesWhatItOwnsOnce) {
  const int raw = open_null();
  {
    UniqueFd fd(raw);
    EXPECT_TRUE(fd);
    EXPECT_EQ(fd.get(), raw);
    EXPECT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
}

TEST(UniqueFd, MovesAndReleases) {
  const int raw = open_null(), other = open_null();
  UniqueFd a(raw), b(other);
  b = std::move(a);
  EXPECT_FALSE(is_open(other)) << "what was replaced is closed";
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): what is left is what is tested
  EXPECT_EQ(b.get(), raw);
  UniqueFd& alias = b;
  b = std::move(alias);
  EXPECT_TRUE(is_open(raw)) << "moving onto itself changes nothing";
  EXPECT_EQ(b.release(), raw);
  EXPECT_FALSE(b);
  EXPECT_TRUE(is_open(raw));
  b.reset(raw);
  b.reset();
  EXPECT_FALSE(is_open(raw));
}

TEST(UniqueFd, DescriptorZeroIsADescriptor) {
  EXPECT_FALSE(UniqueFd());
  UniqueFd zero(0);
  EXPECT_TRUE(zero);
  zero.release();
}

TEST(Mapping, IsZeroedPageAlignedAndWritable) {
  auto mapping = Mapping::anonymous(10'000);
  ASSERT_TRUE(mapping);
  ASSERT_EQ(mapping->bytes().size(), 10'000u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapping->bytes().data()) % 4096, 0u);
  for (const std::byte b : mapping->bytes()) ASSERT_EQ(b, std::byte{0});
  mapping->bytes().back() = std::byte{1};
}

TEST(Mapping, IsSharedAcrossAFork) {
  auto mapping = *Mapping::anonymous(4096);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    mapping.bytes()[0] = std::byte{7};
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(mapping.bytes()[0], std::byte{7});
}

TEST(Mapping, MovesAndUnmapsOnce) {
  auto a = *Mapping::anonymous(4096);
  const auto* address = a.bytes().data();
  Mapping b = std::move(a);
  EXPECT_TRUE(a.bytes().empty());  // NOLINT(bugprone-use-after-move): what is left is what is tested
  EXPECT_EQ(b.bytes().data(), address);
  b = Mapping();
  unsigned char resident = 0;
  EXPECT_EQ(::mincore(const_cast<std::byte*>(address), 4096, &resident), -1) << "still mapped";
}

TEST(Mapping, SaysThatThereIsNotEnoughMemory) {
  const auto mapping = Mapping::anonymous(std::size_t{1} << 60);
  ASSERT_FALSE(mapping);
  EXPECT_EQ(mapping.error().code, ErrorCode::no_memory);
  EXPECT_EQ(mapping.error().sys_errno, ENOMEM);
}

TEST(Memfd, IsTheSameMemoryInEveryMappingAndCannotShrink) {
  const UniqueFd fd(*open_memfd("test", 8192));
  auto one = *Mapping::of_fd(fd.get(), 8192), two = *Mapping::of_fd(fd.get(), 8192);
  one.bytes()[5000] = std::byte{3};
  EXPECT_EQ(two.bytes()[5000], std::byte{3});
  // Whoever could shrink it could kill the other process (SIGBUS).
  EXPECT_EQ(::ftruncate(fd.get(), 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(fd.get(), 16384), -1);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE), -1) << "nor may the peer add seals";
}

TEST(Bytes, AreReadAndWrittenBigEndian) {
  std::array<std::byte, 8> memory{};
  store_u8(memory, 0, 0x01);
  store_be16(memory, 1, 0xfedc);
  store_be32(memory, 3, 0x89abcdef);
  const std::array<unsigned, 8> expected{0x01, 0xfe, 0xdc, 0x89, 0xab, 0xcd, 0xef, 0x00};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(std::to_integer<unsigned>(memory[i]), expected[i]);
  EXPECT_EQ(load_u8(memory, 0), 0x01);
  EXPECT_EQ(load_be16(memory, 1), 0xfedc);
  EXPECT_EQ(load_be32(memory, 3), 0x89abcdefu);
}

TEST(Instant, MovesByDurations) {
  using namespace std::chrono_literals;
  constexpr Instant start{1000};
  EXPECT_EQ(start + 5us, Instant{6000});
  EXPECT_EQ(start - 1us, Instant{0});
  EXPECT_EQ((start + 5us) - start, 5us);
  EXPECT_LT(start, start + 1ns);
  EXPECT_LT(start, kForever);
  EXPECT_EQ(earlier(start, kForever), start);
  EXPECT_EQ(earlier(kForever, start), start);
}

TEST(DropReason, HasANameEach) {
  std::set<std::string_view> names;
  const auto count = static_cast<std::uint16_t>(DropReason::kCount);
  for (std::uint16_t i = 0; i < count; ++i) names.insert(to_string(static_cast<DropReason>(i)));
  EXPECT_EQ(names.size(), count);
  EXPECT_EQ(to_string(DropReason::eth_truncated), "eth_truncated");
  EXPECT_EQ(to_string(DropReason::kCount), "unknown");
}

}  // namespace
}  // namespace netchannel
