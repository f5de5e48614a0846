// What a packet script may say, and what is said of one that is wrong.
#include <gtest/gtest.h>

#include <string>

#include "testkit/packet_script.hpp"

namespace netchannel::testkit::script {
namespace {

using namespace std::chrono_literals;

Script good(const std::string& text) {
  auto script = parse_script(text, "test.pkt");
  if (!script) {
    ADD_FAILURE() << script.error().text();
    return {};
  }
  return std::move(*script);
}

PacketEvent packet(const std::string& text) {
  const Script script = good("+0 " + text);
  if (script.events.size() != 1 || !std::holds_alternative<PacketEvent>(script.events[0].what)) {
    ADD_FAILURE() << text;
    return {};
  }
  return std::get<PacketEvent>(script.events[0].what);
}

std::string wrong(const std::string& text) {
  const auto script = parse_script(text, "test.pkt");
  return script ? "parsed" : script.error().text();
}

TEST(PacketScript, ReadsTimes) {
  const Script script = good(
      "+.1 close(3) = 0\n"
      "0.25 close(3) = 0\n"
      "* > . 1:1(0) ack 1\n"
      "+1~+2 > . 1:1(0) ack 1\n"
      "+0...0.5 read(3, ..., 10) = 10\n");
  ASSERT_EQ(script.events.size(), 5u);
  EXPECT_EQ(script.events[0].time.at, 100ms);
  EXPECT_EQ(script.events[0].time.kind, EventTime::Kind::relative);
  EXPECT_EQ(script.events[1].time.at, 250ms);
  EXPECT_EQ(script.events[1].time.kind, EventTime::Kind::absolute);
  EXPECT_EQ(script.events[2].time.kind, EventTime::Kind::any);
  EXPECT_EQ(script.events[3].time.latest, 2s);
  EXPECT_EQ(script.events[4].time.ends, 500ms);
}

TEST(PacketScript, ReadsAPacketWithEverything) {
  const PacketEvent p = packet(
      "< [ce, peer 3, ttl 9] FP. 1:1001(1000) ack 77 win 500 urg 5 <nop,nop,TS val 5 ecr 6,sack 10:20 "
      "30:40>");
  EXPECT_FALSE(p.sent);
  EXPECT_EQ(p.ecn, 3);
  EXPECT_EQ(p.peer, 3);
  EXPECT_EQ(p.ttl, 9);
  EXPECT_EQ(p.flags, 1 | 8 | 16);
  EXPECT_EQ(p.seq.first, 1u);
  EXPECT_EQ(p.seq.length, 1000u);
  EXPECT_EQ(p.ack, 77u);
  EXPECT_EQ(p.window, std::pair(500u, 500u));
  EXPECT_EQ(p.urgent, 5);
  ASSERT_EQ(p.options.size(), 4u);
  EXPECT_EQ(p.options[2].value, 5u);
  EXPECT_EQ(p.options[2].echo, 6u);
  EXPECT_EQ(p.options[3].blocks.size(), 2u);
}

TEST(PacketScript, ReadsRangesOfWindowsAnyOptionsAndSilence) {
  EXPECT_EQ(packet("> . 1:1(0) ack 1 win 10~20").window, std::pair(10u, 20u));
  EXPECT_TRUE(packet("> . 1:1(0) ack 1 <...>").any_options);
  EXPECT_TRUE(packet("> nothing").nothing);
  EXPECT_EQ(packet("< - 1:1(0) win 5").flags, 0);
  EXPECT_EQ(packet("< S 0:0(0) <raw 0f02,mss 1460>").options[0].bytes.size(), 2u);
}

TEST(PacketScript, ReadsIcmpErrorsWithTheQuotationBeforeOrAfter) {
  const PacketEvent before = packet("< [1:1461(1460)] icmp unreachable frag_needed mtu 1200");
  ASSERT_TRUE(before.icmp);
  EXPECT_EQ(before.icmp->kind, IcmpPart::Kind::too_big);
  EXPECT_EQ(before.icmp->mtu, 1200u);
  EXPECT_EQ(before.icmp->quoted.first, 1u);
  const PacketEvent after = packet("< icmp unreachable port [5:6(1)]");
  ASSERT_TRUE(after.icmp);
  EXPECT_EQ(after.icmp->code, "port");
  EXPECT_EQ(after.icmp->quoted.first, 5u);
}

TEST(PacketScript, ReadsCalls) {
  const Script script = good(
      "+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n"
      "+0 fcntl(3, F_GETFL) = 0x2 (flags O_RDWR)\n"
      "+0 setsockopt(3, SOL_SOCKET, SO_LINGER, {onoff=1, linger=0}, 8) = 0\n"
      "+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n");
  ASSERT_EQ(script.events.size(), 4u);
  const auto& connect = std::get<CallEvent>(script.events[0].what);
  EXPECT_EQ(connect.error, "EINPROGRESS");
  EXPECT_EQ(connect.arguments.size(), 3u);
  EXPECT_EQ(std::get<CallEvent>(script.events[1].what).result.number, 2);
  EXPECT_EQ(std::get<CallEvent>(script.events[2].what).arguments[3].names[1], "linger");
  EXPECT_EQ(std::get<CallEvent>(script.events[3].what).arguments[2].words.size(), 2u);
}

TEST(PacketScript, ReadsAssertionsAndCommands) {
  const Script script = good(
      "`sysctl -q net.ipv4.tcp_ecn=1 net.ipv4.tcp_wmem=\"4096 5000 6000\"`\n"
      "+0 %{ assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd\n assert tcpi_unacked <= 5 }%\n");
  ASSERT_EQ(script.events.size(), 3u);
  const auto& settings = std::get<CommandEvent>(script.events[0].what).settings;
  ASSERT_EQ(settings.size(), 2u);
  EXPECT_EQ(settings[0], std::pair(std::string("tcp_ecn"), std::string("1")));
  EXPECT_EQ(settings[1], std::pair(std::string("tcp_wmem"), std::string("4096 5000 6000")));
  EXPECT_EQ(std::get<AssertEvent>(script.events[1].what).left, "tcpi_snd_cwnd");
  EXPECT_EQ(std::get<AssertEvent>(script.events[2].what).op, "<=");
}

TEST(PacketScript, LinesMayBeForOneTarget) {
  const Script script = good("ours: +0 > . 1:1(0) ack 1\nlinux: +0 > nothing\n+0 close(3) = 0\n");
  ASSERT_EQ(script.events.size(), 3u);
  EXPECT_EQ(script.events[0].whose, Whose::ours);
  EXPECT_EQ(script.events[1].whose, Whose::kernel);
  EXPECT_EQ(script.events[2].whose, Whose::both);
}

TEST(PacketScript, ReadsItsOptions) {
  const Script script = good(
      "// a comment\n--mtu=1000 # and another\n--ip_version=ipv6\n--tolerance_usecs=500\n"
      "--only=ours (it takes a day)\n+0 close(3) = 0\n");
  EXPECT_EQ(script.mtu, 1000u);
  EXPECT_FALSE(script.v4);
  EXPECT_TRUE(script.v6);
  EXPECT_EQ(script.tolerance, 500us);
  EXPECT_EQ(script.only, Whose::ours);
  EXPECT_EQ(script.why_only, "it takes a day");
}

TEST(PacketScript, AnEventMayTakeSeveralLines) {
  const Script script = good("+0 > . 1:1(0) ack 1\n    <nop,nop,sack 5:6>\n+0 close(3) = 0");
  ASSERT_EQ(script.events.size(), 2u);
  EXPECT_EQ(script.events[0].text, "+0 > . 1:1(0) ack 1 <nop,nop,sack 5:6>");
  EXPECT_EQ(script.events[1].line, 3);
}

TEST(PacketScript, WrongScriptsAreToldByLineAndReason) {
  EXPECT_EQ(wrong(""), "test.pkt:1: the script has no events");
  EXPECT_EQ(wrong("+0 close(3) = 0\n\n+0 < S 0:0(1)"), "test.pkt:3: the sequence numbers are 0 apart, not 1");
  EXPECT_EQ(wrong("+0 < X. 0:0(0)"), "test.pkt:1: no flag \"X\" (FSRP.UEW or - for none)");
  EXPECT_EQ(wrong("+0 < . 0:0(0)"),
            "test.pkt:1: \"ack\" belongs to a packet with the flag \".\", and to no other");
  EXPECT_EQ(wrong("+0 < S 0:0(0) <mss 70000>"), "test.pkt:1: the MSS is at most 65535");
  EXPECT_EQ(wrong("+0 < S 0:0(0) <mess 7>"),
            "test.pkt:1: no TCP option \"mess\" (mss wscale sackOK sack TS nop eol raw)");
  EXPECT_EQ(wrong("+0 < S 0:0(0) <raw 0f0>"), "test.pkt:1: raw needs hexadecimal bytes");
  EXPECT_EQ(wrong("+0 < . 1:1(0) ack 1 <TS val 1 ecr 1,sack 1:2 3:4 5:6 7:8>"),
            "test.pkt:1: the options take 44 bytes, of 40");
  EXPECT_EQ(wrong("+0 < S 0:0(0) win 70000"), "test.pkt:1: a window is 0 to 65535, the lesser one first");
  EXPECT_EQ(wrong("+0 > icmp unreachable port [1:1(0)]"), "test.pkt:1: ICMP errors can arrive only");
  EXPECT_EQ(wrong("+0 < icmp unreachable port"),
            "test.pkt:1: an ICMP error quotes a segment: [1:1001(1000)]");
  EXPECT_EQ(wrong("+0 < [blue] S 0:0(0)"),
            "test.pkt:1: no attribute \"blue\" of a packet (noecn ect0 ect1 ce peer ttl port reserved badsum "
            "badlen "
            "from to)");
  EXPECT_EQ(wrong("+0 frob 3"), "test.pkt:1: expected \"(\" before \"3\"");
  EXPECT_EQ(wrong("+0 read(3) = -1"), "test.pkt:1: a result of -1 needs an error, and only that");
  EXPECT_EQ(wrong("now close(3) = 0"), "test.pkt:1: expected a time in seconds before \"now close(3) = 0\"");
  EXPECT_EQ(wrong("* < S 0:0(0)"), "test.pkt:1: \"*\" is for packets that are sent");
  EXPECT_EQ(wrong("+1~+0 > . 1:1(0) ack 1"), "test.pkt:1: the range of times is empty");
  EXPECT_EQ(wrong("+0...1 < S 0:0(0)"), "test.pkt:1: \"...\" is for calls");
  EXPECT_EQ(wrong("--only=ours\n+0 close(3) = 0"), "test.pkt:1: --only needs a reason in parentheses");
  EXPECT_EQ(wrong("--blue=1"), "test.pkt:1: no option --blue (mtu, ip_version, tolerance_usecs, only)");
  EXPECT_EQ(wrong("--mtu=big"), "test.pkt:1: --mtu needs a number, not \"big\"");
  EXPECT_EQ(wrong("+0 close(3) = 0\n--mtu=1000"), "test.pkt:2: options stand before the first event");
  EXPECT_EQ(wrong("include \"no.inc\""), "test.pkt:1: there is no file ./no.inc");
  EXPECT_EQ(wrong("+0 %{ print(1) }%"), "test.pkt:1: only \"assert A == B\" is understood between %{ and }%");
  EXPECT_EQ(wrong("+0 %{ assert a = b }%"),
            "test.pkt:1: an assertion compares two values with == != < > <= >=");
  EXPECT_EQ(wrong("/* open"), "test.pkt:1: a comment without an end");
  EXPECT_EQ(wrong("`tc qdisc show`"),
            "test.pkt:1: only \"sysctl net.ipv4.NAME=VALUE\" is understood, not \"tc\"");
  EXPECT_EQ(wrong("+0 `sysctl x"), "test.pkt:1: \"`\" is missing");
}

}  // namespace
}  // namespace netchannel::testkit::script
