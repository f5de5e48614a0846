#include "netchannel/wire/tcp.hpp"

#include <gtest/gtest.h>

#include <ostream>

#include "packets.hpp"

namespace netchannel::wire {
namespace {

using test::Buffer;
using test::operator+;
using test::hex;

constexpr TcpFlags kSyn{TcpFlags::kSyn}, kAck{TcpFlags::kAck};

// The view lives in the buffer, so both are kept.
struct Segment {
  Buffer packet;
  TcpView view;
  static Segment of(TcpFlags flags, const Buffer& options, const Buffer& payload = {}) {
    Buffer packet = test::tcp4(flags, options, payload);
    const TcpView view = TcpView::parse(Bytes(packet).subspan(20)).value();
    return {std::move(packet), view};
  }
};

struct OptionRow {
  int number;
  const char* name;
  TcpFlags flags;
  const char* options;
  TcpOptions expected;
  bool malformed = false;
};

void PrintTo(const OptionRow& row, std::ostream* out) { *out << "row " << row.number << " " << row.name; }

class TcpOptionInput : public ::testing::TestWithParam<OptionRow> {};

TEST_P(TcpOptionInput, IsReadAsTheTableSays) {
  const OptionRow& row = GetParam();
  const Segment segment = Segment::of(row.flags, hex(row.options));
  const auto [options, malformed] = parse_options(segment.view);
  EXPECT_EQ(malformed, row.malformed);
  EXPECT_EQ(options.mss, row.expected.mss);
  EXPECT_EQ(options.window_scale, row.expected.window_scale);
  EXPECT_EQ(options.sack_permitted, row.expected.sack_permitted);
  EXPECT_EQ(options.timestamps, row.expected.timestamps);
  EXPECT_EQ(options.sack, row.expected.sack);
}

TcpOptions with_mss(std::uint16_t mss) { return {.mss = mss}; }
TcpOptions with_scale(std::uint8_t shift) { return {.window_scale = shift}; }
TcpOptions with_timestamps(std::uint32_t value, std::uint32_t echo) {
  return {.timestamps = TcpTimestamps{value, echo}};
}
TcpOptions with_sack(std::initializer_list<SackBlock> blocks) {
  TcpOptions options;
  for (const SackBlock& block : blocks) options.sack.push_back(block);
  return options;
}

const OptionRow kOptionRows[] = {
    {68, "length_0_ends_them", kSyn, "020405b4 03000000", with_mss(1460), true},
    {68, "length_1_ends_them", kSyn, "02010000 020405b4", {}, true},
    {68, "past_the_header_ends_them", kSyn, "020405b4 080a0000", with_mss(1460), true},
    {68, "kind_without_length", kSyn, "01010102", {}, true},
    {69, "mss_length_3", kSyn, "0203ff01", {}},
    {69, "mss_length_6", kSyn, "020605b4 00000000", {}},
    {69, "mss_0_is_told", kSyn, "02040000", with_mss(0)},
    {69, "mss_65535_is_told", kSyn, "0204ffff", with_mss(65535)},
    {69, "mss_without_syn", kAck, "020405b4", {}},
    {69, "first_mss_holds", kSyn, "020405b4 02040030", with_mss(1460)},
    {70, "scale_length_4", kSyn, "03040707", {}},
    {70, "scale_14", kSyn, "03030e00", with_scale(14)},
    {70, "scale_15_is_14", kSyn, "03030f00", with_scale(14)},
    {70, "scale_255_is_14", kSyn, "0303ff00", with_scale(14)},
    {70, "scale_without_syn", kAck, "03030700", {}},
    {71, "sack_permitted", kSyn, "04020101", {.sack_permitted = true}},
    {71, "sack_permitted_without_syn", kAck, "04020101", {}},
    {71, "sack_permitted_length_3", kSyn, "04030001", {}},
    {71, "sack_of_one", kAck, "0101050a 00000001 00000002", with_sack({{1, 2}})},
    {71, "sack_of_no_block", kAck, "05020101", {}},
    {71, "sack_of_half_a_block", kAck, "0506 00000001 0101", {}},
    {71, "sack_of_four", kAck,
     "0522 0000000100000002 0000000300000004 0000000500000006 0000000700000008 0101",
     with_sack({{1, 2}, {3, 4}, {5, 6}, {7, 8}})},
    {72, "sack_blocks_are_told_as_they_stand", kAck, "0101050a 00000002 00000001", with_sack({{2, 1}})},
    {73, "timestamps", kAck, "0101080a 00000007 00000008", with_timestamps(7, 8)},
    {73, "timestamps_length_9", kAck, "01010809 00000007 000000 01", {}},
    {73, "timestamps_length_12", kAck, "080c00000007 0000000800000000 0101", {}},
    {73, "first_timestamps_hold", kAck, "0101080a 00000007 00000008 0101080a 00000009 0000000a",
     with_timestamps(7, 8)},
    {74, "md5_is_skipped", kSyn, "1312 00000000000000000000000000000000 0101 020405b4", with_mss(1460)},
    {74, "ao_of_length_2_is_skipped", kSyn, "1d020101 020405b4", with_mss(1460)},
    {75,
     "forty_nops",
     kAck,
     "01010101 01010101 01010101 01010101 01010101 01010101 01010101 01010101 01010101 01010101",
     {}},
    {75, "garbage_behind_the_end", kSyn, "020405b4 00ff0000 02010000", with_mss(1460)},
};

INSTANTIATE_TEST_SUITE_P(Rows, TcpOptionInput, ::testing::ValuesIn(kOptionRows), [](const auto& row) {
  return "Row0" + std::to_string(row.param.number) + "_" + row.param.name;
});

TEST(Tcp, Row069_UsableMssIsNeverBelowTheFloor) {
  EXPECT_EQ(usable_mss(0), 48);
  EXPECT_EQ(usable_mss(1), 48);
  EXPECT_EQ(usable_mss(47), 48);
  EXPECT_EQ(usable_mss(48), 48);
  EXPECT_EQ(usable_mss(65535), 65535);
}

TEST(Tcp, Row076_EveryCombinationOfFlagsIsOnlyRead) {
  for (int bits = 0; bits < 256; ++bits) {
    const TcpFlags flags{static_cast<std::uint8_t>(bits)};
    EXPECT_EQ(Segment::of(flags, {}).view.flags(), flags);
  }
}

TEST(Tcp, Row076_ReservedBitsAreNotRead) {
  Segment segment = Segment::of(kAck, {}, test::filler(4));
  store_u8(segment.packet, 32, 0x5f);
  const auto view = TcpView::parse(Bytes(segment.packet).subspan(20)).value();
  EXPECT_EQ(view.header_length(), 20u);
  EXPECT_EQ(view.flags(), kAck);
}

TEST(Tcp, Row077_UrgentLengthStaysInsideTheSegment) {
  const auto urgent = [](std::uint8_t flags, std::uint16_t pointer) {
    Segment segment = Segment::of({flags}, {}, test::filler(10));
    store_be16(segment.packet, 38, pointer);
    return TcpView::parse(Bytes(segment.packet).subspan(20)).value().urgent_length();
  };
  EXPECT_EQ(urgent(TcpFlags::kUrg, 0), 0u);
  EXPECT_EQ(urgent(TcpFlags::kUrg, 3), 3u);
  EXPECT_EQ(urgent(TcpFlags::kUrg, 10), 10u);
  EXPECT_EQ(urgent(TcpFlags::kUrg, 11), 10u);
  EXPECT_EQ(urgent(TcpFlags::kUrg, 65535), 10u);
  EXPECT_EQ(urgent(TcpFlags::kAck, 3), 0u) << "a pointer without URG says nothing";
}

TEST(Tcp, SynAndFinTakeASequenceNumberEach) {
  EXPECT_EQ(Segment::of({TcpFlags::kSyn | TcpFlags::kFin}, {}, test::filler(3)).view.sequence_length(), 5u);
  EXPECT_EQ(Segment::of(kAck, {}).view.sequence_length(), 0u);
}

TEST(Tcp, OptionsStandOnWordBoundariesWhereTheyFit) {
  TcpOptions options{.timestamps = TcpTimestamps{1, 2}};
  options.sack.push_back({3, 4});
  Buffer out(options.size());
  options.emit(out);
  EXPECT_EQ(out, hex("0101080a 00000001 00000002 0101050a 00000003 00000004"));
}

TEST(Tcp, OptionsArePackedWhereAlignmentWouldCostABlock) {
  TcpOptions options{.mss = 1460, .timestamps = TcpTimestamps{1, 2}};
  for (std::uint32_t i = 3; i < 9; i += 2) options.sack.push_back({i, i + 1});
  Buffer out(options.size());
  options.emit(out);
  EXPECT_EQ(out, hex("020405b4 080a0000000100000002"
                     "051a 0000000300000004 0000000500000006 0000000700000008"));
}

TEST(Tcp, SackBlocksThatDoNotFitAreLeftOutTheLastFirst) {
  TcpOptions options{.timestamps = TcpTimestamps{1, 2}};
  for (std::uint32_t i = 0; i < 4; ++i) options.sack.push_back({i * 10, i * 10 + 5});
  const TcpRepr repr{.source_port = 1, .destination_port = 2, .flags = kAck, .options = options};
  Buffer out(repr.size());
  repr.emit(out);
  EXPECT_EQ(repr.size(), 60u);
  const auto read = parse_options(TcpView::parse(out).value()).options;
  EXPECT_EQ(read.timestamps, options.timestamps);
  ASSERT_EQ(read.sack.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(read.sack[i], options.sack[i]);
}

TEST(Tcp, NoOptionsTakeNoBytes) {
  EXPECT_EQ(TcpOptions{}.size(), 0u);
  EXPECT_EQ(TcpRepr{}.size(), 20u);
}

TEST(Tcp, RecognisesAChecksumLeftToTheDevice) {
  Segment segment = Segment::of(kAck, {}, test::filler(9));
  EXPECT_FALSE(has_partial_checksum(segment.view, test::kPeer4, test::kOur4));
  const PartialSum pseudo =
      pseudo_header(test::kPeer4, test::kOur4, Protocol::tcp, segment.view.segment().size());
  store_be16(segment.packet, 36, fold(pseudo));
  EXPECT_TRUE(has_partial_checksum(segment.view, test::kPeer4, test::kOur4));
  EXPECT_FALSE(verify_checksum(segment.view, test::kPeer4, test::kOur4));
}

}  // namespace
}  // namespace netchannel::wire
