// The TCP rows of the project's list of bad input, as frames through the whole stack: each names the counter
// that moves, the answer, and what becomes of the connection that it is meant for. What needs time or many
// packets is shown by the protocol alone (tests/proto_tcp) and, for crowds, by tcp_crowd_test.cpp.
#include <functional>

#include "stack_fixture.hpp"

namespace netchannel::stack {
namespace {

using testkit::bytes;
using testkit::pattern;

constexpr unsigned kFin = 1, kSyn = 2, kRst = 4, kPsh = 8, kAck = 16, kUrg = 32;
constexpr std::uint32_t kIrs = 0x7fff'fff0;
constexpr std::uint16_t kService = 80, kClosed = 81, kPeerPort = 4000, kNewcomer = 4001;

struct Segment {
  unsigned flags = kAck;
  std::uint32_t seq = 0, ack = 0;  // absolute
  Packet payload{};
  Packet options{};  // padded to words with EOL
  std::uint16_t from = kPeerPort, to = kService;
  std::uint16_t urgent = 0;
};

// By hand, so that the stack's own writer is not what checks it.
Packet tcp_bytes(const Segment& g) {
  const std::size_t header = 20 + (g.options.size() + 3) / 4 * 4;
  Packet out(header);
  store_be16(out, 0, g.from);
  store_be16(out, 2, g.to);
  store_be32(out, 4, g.seq);
  store_be32(out, 8, g.ack);
  store_u8(out, 12, static_cast<std::uint8_t>(header / 4 << 4));
  store_u8(out, 13, static_cast<std::uint8_t>(g.flags));
  store_be16(out, 14, 60000);
  store_be16(out, 18, g.urgent);
  std::copy(g.options.begin(), g.options.end(), out.begin() + 20);
  out.insert(out.end(), g.payload.begin(), g.payload.end());
  return out;
}
// Into a frame; with the checksum that is right for the bytes as they are.
Packet framed(Packet tcp, bool right_checksum = true, const IpAddress& to = kOur4) {
  if (tcp.size() >= 18) {
    Packet sum(12);
    store_be32(sum, 0, kPeer4.v4_value());
    store_be32(sum, 4, to.v4_value());
    store_be16(sum, 8, 6);
    store_be16(sum, 10, static_cast<std::uint16_t>(tcp.size()));
    store_be16(tcp, 16, 0);
    sum.insert(sum.end(), tcp.begin(), tcp.end());
    const std::uint16_t right = testkit::internet_checksum(sum);
    store_be16(tcp, 16, right_checksum ? right : static_cast<std::uint16_t>(right ^ 1));
  }
  return testkit::ethernet({kOurMac, kPeerMac}, testkit::kIpv4,
                           testkit::ip({.source = kPeer4, .destination = to, .protocol = 6}, tcp));
}
Packet frame_of(const Segment& g) { return framed(tcp_bytes(g)); }
Packet raw(std::initializer_list<unsigned> values) {
  Packet out;
  for (const unsigned value : values) out.push_back(std::byte(value));
  return out;
}

enum class Reply : std::uint8_t { none, ack, syn_ack, rst };

// Where the established connection stands: what the peer may send next, and what we have sent.
struct Place {
  std::uint32_t next = 0, una = 0;
};

struct Row {
  int number;
  const char* name;
  std::function<Packet(const Place&)> frame;
  std::optional<Counter> counter{};
  Reply reply = Reply::none;
  std::string delivered{};  // to the established connection
  bool ends = false;        // the connection
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.number << " " << row.name; }

Counter of(DropReason reason) { return static_cast<Counter>(reason); }
Segment data(const Place& p, const char* text = "hello") {
  return {.flags = kAck | kPsh, .seq = p.next, .ack = p.una, .payload = bytes(text)};
}
Packet with_options(const Place& p, std::initializer_list<unsigned> options) {
  Segment g = data(p);
  g.options = raw(options);
  return frame_of(g);
}
Packet syn(std::initializer_list<unsigned> options, unsigned flags = kSyn) {
  return frame_of({.flags = flags, .seq = 5, .options = raw(options), .from = kNewcomer});
}

std::vector<Row> rows() {
  using P = const Place&;
  return {
      {66, "NineteenBytes", [](P) { return framed(Packet(19, std::byte{1})); },
       of(DropReason::tcp_truncated)},
      {66, "OffsetFour",
       [](P p) {
         Packet tcp = tcp_bytes(data(p));
         store_u8(tcp, 12, 0x40);
         return framed(tcp);
       },
       of(DropReason::tcp_bad_offset)},
      {66, "OffsetPastTheSegment",
       [](P p) {
         Packet tcp = tcp_bytes(data(p));
         store_u8(tcp, 12, 0xf0);
         return framed(tcp);
       },
       of(DropReason::tcp_bad_offset)},
      {67, "WrongChecksum", [](P p) { return framed(tcp_bytes(data(p)), false); },
       of(DropReason::tcp_bad_checksum)},
      {68, "OptionLengthZero", [](P p) { return with_options(p, {99, 0, 1, 1}); }, {}, Reply::ack, "hello"},
      {68, "OptionLengthOne", [](P p) { return with_options(p, {99, 1, 1, 1}); }, {}, Reply::ack, "hello"},
      {68,
       "OptionPastTheHeader",
       [](P p) { return with_options(p, {1, 1, 5, 40}); },
       {},
       Reply::ack,
       "hello"},
      {69, "MssZero", [](P) { return syn({2, 4, 0, 0}); }, {}, Reply::syn_ack},
      {69, "MssOne", [](P) { return syn({2, 4, 0, 1}); }, {}, Reply::syn_ack},
      {69, "MssLargest", [](P) { return syn({2, 4, 255, 255}); }, {}, Reply::syn_ack},
      {69, "MssLengthThree", [](P) { return syn({2, 3, 5, 0}); }, {}, Reply::syn_ack},
      {70, "ShiftOf255", [](P) { return syn({3, 3, 255, 0}); }, {}, Reply::syn_ack},
      {70, "ShiftOnData", [](P p) { return with_options(p, {3, 3, 2, 0}); }, {}, Reply::ack, "hello"},
      {71, "SackOfNoBlock", [](P p) { return with_options(p, {5, 2, 1, 1}); }, {}, Reply::ack, "hello"},
      {71,
       "SackOfAHalfBlock",
       [](P p) { return with_options(p, {5, 6, 1, 2, 3, 4, 1, 1}); },
       {},
       Reply::ack,
       "hello"},
      {72,
       "SackThatWasNotAgreedOn",
       [](P p) {
         Segment g = data(p);
         g.options = raw({5, 10, 0, 0, 0, 0, 0, 0, 0, 0});
         store_be32(g.options, 2, p.una + 100);
         store_be32(g.options, 6, p.una + 200);
         return frame_of(g);
       },
       {},
       Reply::ack,
       "hello"},
      {73,
       "TimestampsThatWereNotAgreedOn",
       [](P p) { return with_options(p, {8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1}); },
       {},
       Reply::ack,
       "hello"},
      {74,
       "Md5Signature",
       [](P p) {
         return with_options(p, {19, 18, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 1, 1});
       },
       {},
       Reply::ack,
       "hello"},
      {75,
       "FortyNops",
       [](P p) {
         Segment g = data(p);
         g.options = Packet(40, std::byte{1});
         return frame_of(g);
       },
       {},
       Reply::ack,
       "hello"},
      {75, "EndAndGarbage", [](P p) { return with_options(p, {0, 255, 255, 255}); }, {}, Reply::ack, "hello"},
      {76, "NoFlags",
       [](P p) {
         Segment g = data(p);
         g.flags = 0;
         return frame_of(g);
       },
       Counter::tcp_bad_flags},
      {76, "SynAndFinToAListener", [](P) { return syn({}, kSyn | kFin); }, Counter::tcp_bad_flags},
      {76, "SynAndRstToAListener", [](P) { return syn({}, kSyn | kRst); }},
      {76, "EverythingToAListener", [](P) { return syn({}, 0xff); }},
      {77,
       "UrgentPointerZero",
       [](P p) {
         Segment g = data(p);
         g.flags |= kUrg;
         return frame_of(g);
       },
       {},
       Reply::ack,
       "hello"},
      {77,
       "UrgentPointerBeyond",
       [](P p) {
         Segment g = data(p);
         g.flags |= kUrg;
         g.urgent = 0xffff;
         return frame_of(g);
       },
       {},
       Reply::ack,
       "hello"},
      {78, "FromPortZero", [](P) { return frame_of({.flags = kSyn, .from = 0}); },
       of(DropReason::tcp_bad_port)},
      {78, "ToPortZero", [](P) { return frame_of({.flags = kSyn, .to = 0}); }, of(DropReason::tcp_bad_port)},
      {79, "SynToNobody", [](P) { return frame_of({.flags = kSyn, .to = kClosed}); },
       of(DropReason::tcp_no_socket), Reply::rst},
      {79, "AckToNobody", [](P) { return frame_of({.flags = kAck, .to = kClosed}); },
       of(DropReason::tcp_no_socket), Reply::rst},
      {79, "RstToNobody", [](P) { return frame_of({.flags = kRst, .to = kClosed}); },
       of(DropReason::tcp_no_socket)},
      {79,
       "AckToAListener",
       [](P) { return frame_of({.flags = kAck, .ack = 9, .from = kNewcomer}); },
       {},
       Reply::rst},
      {57, "SynToTheBroadcast",  // MUST-57
       [](P) { return framed(tcp_bytes({.flags = kSyn}), true, IpAddress::v4(10, 0, 0, 255)); },
       of(DropReason::tcp_no_socket)},
      {80,
       "SynWithData",
       [](P) { return frame_of({.flags = kSyn, .seq = 5, .payload = bytes("early"), .from = kNewcomer}); },
       {},
       Reply::syn_ack},
      {81,
       "SynInTheConnection",
       [](P p) { return frame_of({.flags = kSyn, .seq = p.next + 9}); },
       {},
       Reply::ack},
      {82, "SynAckToAListener", [](P) { return syn({}, kSyn | kAck); }, {}, Reply::rst},
      {82,
       "SynAckInTheConnection",
       [](P p) { return frame_of({.flags = kSyn | kAck, .seq = p.next, .ack = p.una}); },
       {},
       Reply::ack},
      {83,
       "RstExact",
       [](P p) { return frame_of({.flags = kRst, .seq = p.next}); },
       {},
       Reply::none,
       "",
       true},
      {83,
       "RstInTheWindow",
       [](P p) { return frame_of({.flags = kRst, .seq = p.next + 1}); },
       {},
       Reply::ack},
      {83, "RstOutsideTheWindow", [](P p) { return frame_of({.flags = kRst, .seq = p.next - 1}); }},
      {84, "WhollyLeft",
       [](P p) {
         Segment g = data(p);
         g.seq -= 5;
         return frame_of(g);
       },
       Counter::tcp_out_of_window, Reply::ack},
      {84, "StraddlingTheLeftEdge",
       [](P p) {
         Segment g = data(p);
         g.seq -= 2;
         return frame_of(g);
       },
       Counter::tcp_duplicate, Reply::ack, "llo"},
      {84, "WhollyRight",
       [](P p) {
         Segment g = data(p);
         g.seq += 1 << 20;
         return frame_of(g);
       },
       Counter::tcp_out_of_window, Reply::ack},
      {85, "AckOfWhatWasNotSent",
       [](P p) {
         Segment g = data(p);
         g.ack += 1;
         return frame_of(g);
       },
       Counter::tcp_bad_ack, Reply::ack},
      {86,
       "DataOverTheWrap",
       [](P p) {
         Segment g = data(p);
         g.payload = bytes("sixteen bytes at");
         return frame_of(g);
       },
       {},
       Reply::ack,
       "sixteen bytes at"},
  };
}

class TcpBadInput : public StackTest, public ::testing::WithParamInterface<Row> {
 protected:
  TcpBadInput() {
    start_steered();
    TcpListen options;
    options.local = {IpAddress::any_v4(), kService};
    listener = *stack().tcp().listen(options);
    connection = connect(kPeerPort, place);
  }
  TcpHandle connect(std::uint16_t port, Place& at) {
    arrive(frame_of({.flags = kSyn, .seq = kIrs, .from = port}));
    const auto answer = sent_one();
    if (!answer) return {};
    at = {kIrs + 1, load_be32(*answer, 34 + 4) + 1};
    arrive(frame_of({.flags = kAck, .seq = at.next, .ack = at.una, .from = port}));
    const auto accepted = stack().tcp().accept(listener);
    EXPECT_TRUE(accepted);
    return accepted.value_or(TcpHandle{});
  }
  std::string read() {
    std::string out;
    std::array<Bytes, 4> views;
    while (const std::size_t n = stack().tcp().spans(connection, views)) {
      for (const Bytes view : std::span(views).first(n)) {
        out.append(reinterpret_cast<const char*>(view.data()), view.size());
        stack().tcp().consume(connection, view.size());
      }
    }
    return out;
  }
  static Reply reply_of(const Packet& frame) {
    const unsigned flags = load_u8(frame, 34 + 13);
    if ((flags & kRst) != 0) return Reply::rst;
    if ((flags & kSyn) != 0) return Reply::syn_ack;
    return Reply::ack;
  }

  TcpListenerHandle listener;
  TcpHandle connection;
  Place place;
};

TEST_P(TcpBadInput, HasItsCounterItsAnswerAndItsEffect) {
  const Row& row = GetParam();
  const std::uint64_t before = row.counter ? count(*row.counter) : 0;
  ASSERT_TRUE(arrive(row.frame(place)));
  const auto replies = sent();
  EXPECT_EQ(row.counter ? count(*row.counter) - before : 1, 1u);
  if (row.reply == Reply::none) {
    EXPECT_TRUE(replies.empty());
  } else {
    ASSERT_EQ(replies.size(), 1u);
    EXPECT_EQ(reply_of(replies[0]), row.reply);
    EXPECT_EQ(testkit::internet_checksum(Bytes(replies[0]).subspan(14, 20)), 0) << "of the IP header";
  }
  EXPECT_EQ(read(), row.delivered);
  const tcp::Connection* c = stack().tcp().find(connection);
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->state.state, row.ends ? tcp::State::closed : tcp::State::established);

  // And life goes on: the connection reads and writes, a new one is made, no slot is lost.
  if (!row.ends) {
    Place now_at = place;
    now_at.next += static_cast<std::uint32_t>(row.delivered.size());
    arrive(frame_of(data(now_at, " world")));
    EXPECT_EQ(read(), " world");
    sent();
    EXPECT_EQ(stack().tcp().write(connection, bytes("yes")), 3u);
    stack().tcp().flush();
    const auto answer = sent_one();
    ASSERT_TRUE(answer);
    EXPECT_EQ(load_be32(*answer, 34 + 4), place.una);
    EXPECT_EQ(Packet(answer->end() - 3, answer->end()), bytes("yes"));
  }
  Place another;
  EXPECT_TRUE(connect(4002, another));
  poll();
  EXPECT_EQ(lent(), settings.slots);
}

std::string name_of(const ::testing::TestParamInfo<Row>& info) {
  return "Row" + std::to_string(info.param.number) + "_" + info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Tcp, TcpBadInput, ::testing::ValuesIn(rows()), name_of);

}  // namespace
}  // namespace netchannel::stack
