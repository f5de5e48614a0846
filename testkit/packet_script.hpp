// Packet scripts: a dialogue between a TCP and the packets that come to it, one line an event, in the
// language of packetdrill as far as we need it (tests/packets/README.md describes it):
//
//   +0  socket(..., SOCK_STREAM, IPPROTO_TCP) = 3          a call of the socket interface and its result
//   +0  < S 0:0(0) win 65535 <mss 1460>                    a packet that arrives
//   +0  > S. 0:0(0) ack 1 <mss 1460>                       a packet that must be sent now
//
// A script is parsed into this tree once and then run (packet_script_run.hpp) against a target: our stack in
// virtual time, or the kernel. Lines that begin with "ours:" or "linux:" are for that target alone. Parsing
// knows the form only; what a constant or a call means is the runner's business.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tl/expected.hpp>

#include "netchannel/address.hpp"
#include "netchannel/time.hpp"

namespace netchannel::testkit::script {

enum class Whose : std::uint8_t { both, ours, kernel };

struct ScriptError {
  std::string file;
  int line = 0;
  std::string reason;
  std::string text() const { return file + ":" + std::to_string(line) + ": " + reason; }
};

// "+.1", "0.5", "*", "+0~+.2", "+0...0.2".
struct EventTime {
  enum class Kind : std::uint8_t { relative, absolute, any };
  Kind kind = Kind::relative;
  Duration at{0};
  std::optional<Duration> latest;  // of "~"
  std::optional<Duration> ends;    // of "...": when a call that waits returns
};

// Sequence numbers count from 0 at each side's SYN.
struct SequenceRange {
  std::uint32_t first = 0;
  std::uint32_t length = 0;
};

struct Option {
  enum class Kind : std::uint8_t { mss, wscale, sack_permitted, sack, timestamps, nop, end, raw };
  Kind kind = Kind::nop;
  std::uint32_t value = 0;  // mss, wscale, TSval
  std::uint32_t echo = 0;   // TSecr
  std::vector<std::pair<std::uint32_t, std::uint32_t>> blocks;
  std::vector<std::byte> bytes;  // raw: kind, length and all
  friend bool operator==(const Option&, const Option&) = default;
};

struct IcmpPart {
  enum class Kind : std::uint8_t { unreachable, too_big, time_exceeded, parameter_problem, source_quench };
  Kind kind = Kind::unreachable;
  std::string code;  // "host", "port", ... or ""
  std::uint32_t mtu = 0;
  SequenceRange quoted;
};

struct PacketEvent {
  bool sent = false;     // ">": by the target; else it arrives
  bool nothing = false;  // "> nothing"

  // In brackets.
  std::optional<std::uint8_t> ecn;  // 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE
  std::uint16_t peer = 1;           // which peer port
  bool bad_checksum = false;
  bool bad_length = false;  // the IP header announces more than there is
  std::optional<std::uint8_t> ttl;
  std::optional<IpAddress> from, to;
  std::optional<std::uint16_t> local_port;

  std::optional<IcmpPart> icmp;
  std::uint8_t flags = 0;     // as in the TCP header
  std::uint8_t reserved = 0;  // the bits between data offset and flags
  SequenceRange seq;
  std::optional<std::uint32_t> ack;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> window;  // least and most
  std::uint16_t urgent = 0;
  bool any_options = false;  // "<...>"
  std::vector<Option> options;
};

// An argument or a result.
struct Value {
  enum class Kind : std::uint8_t { any, number, words, text, list, fields };
  Kind kind = Kind::any;
  std::int64_t number = 0;
  std::vector<std::string> words;  // constants and numbers, or'ed
  std::string text;
  std::vector<Value> items;        // of a list or of fields
  std::vector<std::string> names;  // of those, "" in a list
};

struct CallEvent {
  std::string name;
  std::vector<Value> arguments;
  Value result;
  std::string error;  // "EAGAIN", or ""
};

// Settings under the names of Linux's sysctls: `sysctl net.ipv4.tcp_ecn=1`.
struct CommandEvent {
  std::vector<std::pair<std::string, std::string>> settings;  // "tcp_ecn", "1"
};

// %{ assert tcpi_snd_cwnd == 10, "..." }%
struct AssertEvent {
  std::string left;
  std::string op;
  std::string right;
};

struct Event {
  std::string file;
  int line = 0;
  std::string text;  // as it stands in the script
  Whose whose = Whose::both;
  EventTime time;
  std::variant<PacketEvent, CallEvent, CommandEvent, AssertEvent> what;
};

struct Script {
  std::string name;
  std::uint32_t mtu = 1500;  // for IPv4; IPv6 gets 20 bytes more, so that segments are equally large
  bool v4 = true, v6 = true;
  Whose only = Whose::both;
  std::string why_only;
  std::optional<Duration> tolerance;  // instead of the target's own
  std::vector<Event> events;
};

// `name` is for messages; files that it includes are looked for in `folder`.
tl::expected<Script, ScriptError> parse_script(std::string_view text, const std::string& name,
                                               const std::string& folder = ".");
tl::expected<Script, ScriptError> read_script(const std::string& path);

}  // namespace netchannel::testkit::script
