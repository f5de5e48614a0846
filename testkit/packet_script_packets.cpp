// A packet of a script: "< [ce] P. 1:1001(1000) ack 1 win 500 <nop,nop,TS val 5 ecr 1>".
#include <array>

#include "testkit/packet_script_parse.hpp"

namespace netchannel::testkit::script {
namespace {

struct Named {
  std::string_view name;
  std::uint8_t value;
};
constexpr std::array kEcn{Named{"noecn", 0}, Named{"nonect", 0}, Named{"ect1", 1}, Named{"ect0", 2},
                          Named{"ce", 3}};
// In the order of the header's bits.
constexpr std::string_view kFlagLetters = "FSRP.UEW";

SequenceRange parse_range(Cursor& in) {
  SequenceRange range;
  range.first = in.number("the first sequence number");
  in.need(":");
  const std::uint32_t end = in.number("the sequence number after the last");
  in.need("(");
  range.length = in.number("the length");
  in.need(")");
  if (end - range.first != range.length)
    in.fail("the sequence numbers are " + std::to_string(end - range.first) + " apart, not " +
            std::to_string(range.length));
  return range;
}

IpAddress parse_address(Cursor& in) {
  const std::string text = in.token(",]");
  const auto address = IpAddress::parse(text);
  if (!address) in.fail("\"" + text + "\" is no address");
  return address.value_or(IpAddress{});
}

template <class Number>
Number small_number(Cursor& in, std::string_view what, Number most) {
  const std::uint32_t value = in.number(what);
  if (value > most) in.fail(std::string(what) + " is at most " + std::to_string(most));
  return static_cast<Number>(value);
}

// "[ect0, peer 2]"
void parse_attributes(Cursor& in, PacketEvent& packet) {
  do {
    const std::string name = in.word();
    bool ecn = false;
    for (const Named& known : kEcn) {
      if (known.name != name) continue;
      packet.ecn = known.value;
      ecn = true;
    }
    if (ecn) continue;
    if (name == "peer") {
      packet.peer = small_number<std::uint16_t>(in, "the peer", 1000);
    } else if (name == "ttl") {
      packet.ttl = small_number<std::uint8_t>(in, "the TTL", 255);
    } else if (name == "port") {
      packet.local_port = small_number<std::uint16_t>(in, "the port", 65535);
    } else if (name == "reserved") {
      packet.reserved = small_number<std::uint8_t>(in, "the reserved bits", 15);
    } else if (name == "badsum") {
      packet.bad_checksum = true;
    } else if (name == "badlen") {
      packet.bad_length = true;
    } else if (name == "from") {
      packet.from = parse_address(in);
    } else if (name == "to") {
      packet.to = parse_address(in);
    } else {
      in.fail("no attribute \"" + name +
              "\" of a packet (noecn ect0 ect1 ce peer ttl port reserved badsum badlen from to)");
    }
  } while (!in.failed() && in.take(","));
  in.need("]");
}

IcmpPart::Kind icmp_kind(Cursor& in, std::string_view name) {
  using Kind = IcmpPart::Kind;
  if (name == "unreachable") return Kind::unreachable;
  if (name == "packet_too_big") return Kind::too_big;
  if (name == "time_exceeded") return Kind::time_exceeded;
  if (name == "parameter_problem") return Kind::parameter_problem;
  if (name == "source_quench") return Kind::source_quench;
  in.fail("no ICMP \"" + std::string(name) +
          "\" (unreachable packet_too_big time_exceeded parameter_problem source_quench)");
  return Kind::unreachable;
}

void parse_icmp(Cursor& in, IcmpPart& icmp) {
  icmp.kind = icmp_kind(in, in.word());
  if (icmp.kind == IcmpPart::Kind::unreachable) {
    icmp.code = in.sees("[") ? "net" : in.word();
    constexpr std::array<std::string_view, 6> kCodes{"net",  "host",        "protocol",
                                                     "port", "frag_needed", "admin"};
    if (std::find(kCodes.begin(), kCodes.end(), icmp.code) == kCodes.end())
      in.fail("unreachable needs net, host, protocol, port, frag_needed or admin, not \"" + icmp.code + "\"");
    if (icmp.code == "frag_needed") icmp.kind = IcmpPart::Kind::too_big;
  }
  if (icmp.kind == IcmpPart::Kind::too_big) {
    in.need("mtu");
    icmp.mtu = in.number("the MTU");
  }
}

std::uint8_t parse_flags(Cursor& in) {
  const std::string letters = in.token();
  std::uint8_t flags = 0;
  if (letters.empty()) in.fail("expected the flags before " + in.here());
  if (letters == "-") return 0;
  for (const char letter : letters) {
    const std::size_t bit = kFlagLetters.find(letter);
    if (bit == std::string_view::npos) {
      in.fail("no flag \"" + std::string(1, letter) + "\" (" + std::string(kFlagLetters) + " or - for none)");
      return 0;
    }
    flags = static_cast<std::uint8_t>(flags | 1u << bit);
  }
  return flags;
}

Option parse_raw(Cursor& in) {
  Option option{.kind = Option::Kind::raw, .blocks = {}, .bytes = {}};
  const std::string digits = in.token(",>");
  if (digits.empty() || digits.size() % 2 != 0) in.fail("raw needs hexadecimal bytes");
  for (std::size_t i = 0; !in.failed() && i + 1 < digits.size(); i += 2) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(&digits[i], &digits[i] + 2, value, 16);
    if (error != std::errc{} || end != &digits[i] + 2) in.fail("\"" + digits + "\" is not hexadecimal");
    option.bytes.push_back(static_cast<std::byte>(value));
  }
  return option;
}

Option parse_tcp_option(Cursor& in) {
  using Kind = Option::Kind;
  Option option{.blocks = {}, .bytes = {}};
  const std::string name = in.word();
  if (name == "nop") {
    option.kind = Kind::nop;
  } else if (name == "eol") {
    option.kind = Kind::end;
  } else if (name == "mss") {
    option.kind = Kind::mss;
    option.value = small_number<std::uint16_t>(in, "the MSS", 65535);
  } else if (name == "wscale") {
    option.kind = Kind::wscale;
    option.value = small_number<std::uint8_t>(in, "the shift", 255);
  } else if (name == "sackOK") {
    option.kind = Kind::sack_permitted;
  } else if (name == "sack") {
    option.kind = Kind::sack;
    while (!in.failed() && in.peek() >= '0' && in.peek() <= '9') {
      const std::uint32_t left = in.number("the left edge");
      in.need(":");
      option.blocks.emplace_back(left, in.number("the right edge"));
    }
  } else if (name == "TS") {
    option.kind = Kind::timestamps;
    in.need("val");
    option.value = in.number("TSval");
    in.need("ecr");
    option.echo = in.number("TSecr");
  } else if (name == "raw") {
    return parse_raw(in);
  } else {
    in.fail("no TCP option \"" + name + "\" (mss wscale sackOK sack TS nop eol raw)");
  }
  return option;
}

std::size_t size_of(const Option& option) {
  using Kind = Option::Kind;
  switch (option.kind) {
    case Kind::mss:
      return 4;
    case Kind::wscale:
      return 3;
    case Kind::sack_permitted:
      return 2;
    case Kind::sack:
      return 2 + 8 * option.blocks.size();
    case Kind::timestamps:
      return 10;
    case Kind::nop:
    case Kind::end:
      return 1;
    case Kind::raw:
      break;
  }
  return option.bytes.size();
}

void parse_options(Cursor& in, PacketEvent& packet) {
  if (in.take("...")) {
    packet.any_options = true;
  } else {
    do packet.options.push_back(parse_tcp_option(in));
    while (!in.failed() && in.take(","));
  }
  std::size_t size = 0;
  for (const Option& option : packet.options) size += size_of(option);
  if (size > 40) in.fail("the options take " + std::to_string(size) + " bytes, of 40");
  in.need(">");
}

// What may follow the sequence numbers, in any order.
void parse_fields(Cursor& in, PacketEvent& packet) {
  while (!in.failed()) {
    if (in.take("ack ")) {
      packet.ack = in.number("the acknowledgment");
    } else if (in.take("win ")) {
      const std::uint32_t least = in.number("the window");
      packet.window = {least, in.take("~") ? in.number("the largest window") : least};
      if (packet.window->second > 0xffff || packet.window->second < least)
        in.fail("a window is 0 to 65535, the lesser one first");
    } else if (in.take("urg ")) {
      packet.urgent = small_number<std::uint16_t>(in, "the urgent pointer", 65535);
    } else if (in.take("<")) {
      return parse_options(in, packet);
    } else {
      return;
    }
  }
}

}  // namespace

PacketEvent parse_packet(Cursor& in) {
  PacketEvent packet;
  packet.sent = in.take(">");
  if (!packet.sent) in.need("<");
  if (packet.sent && in.take("nothing")) {
    packet.nothing = true;
    return packet;
  }
  std::optional<SequenceRange> quoted;
  while (!in.failed() && in.take("[")) {
    const char first = in.peek();
    if (first >= '0' && first <= '9') {
      quoted = parse_range(in);
      in.need("]");
    } else {
      parse_attributes(in, packet);
    }
  }
  if (in.take("icmp")) {
    packet.icmp.emplace();
    parse_icmp(in, *packet.icmp);
    if (!quoted && in.take("[")) {
      quoted = parse_range(in);
      in.need("]");
    }
    if (!quoted) in.fail("an ICMP error quotes a segment: [1:1001(1000)]");
    if (packet.sent) in.fail("ICMP errors can arrive only");
    packet.icmp->quoted = quoted.value_or(SequenceRange{});
    return packet;
  }
  if (quoted) in.fail("only an ICMP error quotes a segment");
  packet.flags = parse_flags(in);
  packet.seq = parse_range(in);
  parse_fields(in, packet);
  constexpr std::uint8_t kAck = 16;
  if (packet.ack.has_value() != ((packet.flags & kAck) != 0))
    in.fail("\"ack\" belongs to a packet with the flag \".\", and to no other");
  return packet;
}

}  // namespace netchannel::testkit::script
