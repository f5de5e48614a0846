// From bytes to a SegmentIn and from a SegmentOut to bytes: what the stack does at TCP's edges.
#include "proto/tcp/segment.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace netchannel::tcp {
namespace {

TEST(Segment, is_read_from_a_view_with_its_options) {
  wire::TcpRepr repr;
  repr.source_port = 1;
  repr.destination_port = 2;
  repr.sequence = 0xfffffff0;
  repr.acknowledgment = 77;
  repr.flags = {wire::TcpFlags::kAck | wire::TcpFlags::kFin};
  repr.window = 1234;
  repr.options.timestamps = {5, 6};
  repr.options.sack.push_back({10, 20});
  std::vector<std::byte> bytes(repr.size() + 100);
  repr.emit(bytes);
  const auto view = wire::TcpView::parse(bytes);
  ASSERT_TRUE(view.has_value());
  SegmentIn in = segment_from(*view);
  in.length = static_cast<std::uint32_t>(view->payload().size());
  EXPECT_EQ(in.seq, Seq{0xfffffff0});
  EXPECT_EQ(in.ack, Seq{77});
  EXPECT_EQ(in.flags, repr.flags);
  EXPECT_EQ(in.window, 1234);
  EXPECT_EQ(in.options, repr.options);
  EXPECT_EQ(in.sequence_length(), 101U);
  EXPECT_EQ(in.end(), Seq{0xfffffff0 + 101U});
}

TEST(Segment, malformed_options_hold_up_to_where_they_went_wrong) {  // MUST-7
  wire::TcpRepr repr;
  repr.source_port = 1;
  repr.destination_port = 2;
  repr.flags = {wire::TcpFlags::kSyn};
  repr.options.mss = 1400;
  repr.options.timestamps = {5, 6};
  std::vector<std::byte> bytes(repr.size());
  repr.emit(bytes);
  bytes[25] = std::byte{0};  // inside the padding and the second option: a length of 0
  const auto view = wire::TcpView::parse(bytes);
  ASSERT_TRUE(view.has_value());
  const SegmentIn in = segment_from(*view);
  EXPECT_EQ(in.options.mss, 1400);
  EXPECT_TRUE(in.flags.syn());
}

}  // namespace
}  // namespace netchannel::tcp
