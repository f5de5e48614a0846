#include "testkit/packet_script_peer.hpp"

#include <cstdio>
#include <cstdlib>

namespace netchannel::testkit::script {
namespace {

constexpr std::uint32_t kRemoteIsn = 0xffffff00;

bool has(const PacketEvent& packet, std::uint8_t flag) { return (packet.flags & flag) != 0; }
bool has(const Segment& segment, std::uint8_t flag) { return (segment.flags & flag) != 0; }

// Place in the stream of the first byte of a segment that begins at `seq`.
std::uint64_t place_of(std::uint32_t seq, bool syn) { return std::uint64_t{seq} - (syn ? 0 : 1); }

}  // namespace

std::byte stream_byte(std::uint64_t place, bool from_target) {
  return static_cast<std::byte>((place * 31 + place / 251 + (from_target ? 113 : 7)) & 0xff);
}

std::optional<Packet> Peer::arriving(const PacketEvent& packet) {
  if (packet.icmp) return icmp(packet);
  if (has(packet, Flags::kSyn) && !has(packet, Flags::kAck)) {
    if (syn_ && *syn_ != packet.seq.first) learn_ = true;
    syn_ = packet.seq.first;
  }
  return packet_of(to_wire(packet), {.checksum = packet.bad_checksum, .length = packet.bad_length});
}

Segment Peer::to_wire(const PacketEvent& packet) const {
  Segment out;
  out.from = {packet.from.value_or(net_.remote), remote_.port};
  out.to = {packet.to.value_or(net_.local), packet.local_port.value_or(port_.value_or(net_.port))};
  out.ttl = packet.ttl.value_or(64);
  out.tos = packet.ecn.value_or(0);
  out.seq = kRemoteIsn + packet.seq.first;
  out.ack = packet.ack ? *packet.ack + isn_ : 0;
  out.flags = packet.flags;
  out.reserved = packet.reserved;
  out.window = static_cast<std::uint16_t>(packet.window ? packet.window->first : 0);
  out.urgent = packet.urgent;
  out.options = packet.options;
  for (Option& option : out.options) {
    for (auto& [left, right] : option.blocks) left += isn_, right += isn_;
    if (option.kind == Option::Kind::timestamps) option.echo = live_stamp(option.echo);
  }
  const std::uint64_t place = place_of(packet.seq.first, has(packet, Flags::kSyn));
  for (std::uint32_t i = 0; i < packet.seq.length; ++i) out.payload.push_back(stream_byte(place + i, false));
  return out;
}

std::optional<Packet> Peer::icmp(const PacketEvent& packet) const {
  Segment quoted;
  quoted.from = {net_.local, port_.value_or(net_.port)};
  quoted.to = remote_;
  quoted.seq = packet.icmp->quoted.first + isn_;
  quoted.flags = Flags::kAck;
  quoted.payload.resize(packet.icmp->quoted.length);
  IcmpPart error = *packet.icmp;
  if (net_.local.is_v6() && error.mtu != 0) error.mtu += 20;
  return icmp_error(error, packet.from.value_or(net_.router), packet_of(quoted));
}

std::uint32_t Peer::live_stamp(std::uint32_t name) const {
  if (const auto found = stamps_.find(name); found != stamps_.end()) return found->second;
  if (name == 0 || !first_stamp_) return name;
  return first_stamp_->live + (name - first_stamp_->name);
}

std::string Peer::compare(const PacketEvent& packet, const Segment& s, const Progress& progress) {
  if (std::string why = compare_ends(packet, s); !why.empty()) return why;
  if (learn_ && has(packet, Flags::kSyn) && has(s, Flags::kSyn)) learn(packet, s);
  if (std::string why = compare_header(packet, s, progress.bytes); !why.empty()) return why;
  if (std::string why = compare_payload(s); !why.empty()) return why;
  return compare_options(packet, s, progress);
}

void Peer::learn(const PacketEvent& packet, const Segment& s) {
  isn_ = s.seq - packet.seq.first;
  learn_ = false;
  port_ = s.from.port;
  stamps_.clear();
  first_stamp_.reset();
}

std::string Peer::compare_ends(const PacketEvent& packet, const Segment& s) const {
  if (s.from.address != packet.from.value_or(net_.local))
    return "it comes from " + s.from.address.to_string();
  if (s.to != Endpoint{packet.to.value_or(net_.remote), remote_.port})
    return "it goes to " + s.to.to_string();
  const bool other_port =
      (port_ && !learn_ && s.from.port != *port_) || (packet.local_port && s.from.port != *packet.local_port);
  return other_port ? "it comes from port " + std::to_string(s.from.port) : "";
}

std::string Peer::compare_header(const PacketEvent& packet, const Segment& s, std::uint32_t got) const {
  const auto length = static_cast<std::uint32_t>(s.payload.size());
  if (s.seq - isn_ != packet.seq.first + got || got + length > packet.seq.length)
    return "the sequence numbers differ";
  if (length == 0 && packet.seq.length != 0) return "it carries nothing";
  // In the midst of a packet that came in several the flags of its end are missing.
  const bool last = got + length == packet.seq.length;
  const auto flags =
      static_cast<std::uint8_t>(last ? packet.flags : packet.flags & ~(Flags::kPsh | Flags::kFin));
  // A sender may push more often than it must (RFC 9293 MUST-60).
  const bool may_push = (flags & Flags::kPsh) == 0 && length != 0;
  if ((may_push ? s.flags & ~Flags::kPsh : s.flags) != flags) return "the flags differ";
  if (packet.ack && s.ack != *packet.ack + kRemoteIsn) return "the acknowledgment differs";
  if (packet.window && (s.window < packet.window->first || s.window > packet.window->second))
    return "the window differs";
  if (packet.ecn && (s.tos & 3) != *packet.ecn) return "the ECN bits differ";
  if (packet.ttl && s.ttl != *packet.ttl) return "the TTL is " + std::to_string(s.ttl);
  if (s.urgent != packet.urgent || s.reserved != packet.reserved)
    return "urgent pointer or reserved bits differ";
  return "";
}

std::string Peer::compare_payload(const Segment& s) const {
  const std::uint64_t place = place_of(s.seq - isn_, has(s, Flags::kSyn));
  for (std::size_t i = 0; i < s.payload.size(); ++i) {
    if (s.payload[i] != stream_byte(place + i, true))
      return "byte " + std::to_string(place + i) + " of the stream is wrong";
  }
  return "";
}

std::string Peer::compare_options(const PacketEvent& packet, const Segment& s, const Progress& progress) {
  if (packet.any_options) return "";
  std::vector<Option> wanted;
  for (const Option& option : packet.options) {
    if (option.kind != Option::Kind::nop && option.kind != Option::Kind::end) wanted.push_back(option);
  }
  if (wanted.size() != s.options.size()) return "the options differ";
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Option& want = wanted[i];
    const Option& is = s.options[i];
    if (want.kind == Option::Kind::timestamps && is.kind == want.kind) {
      if (want.echo != is.echo) return "TSecr differs";
      if (std::string why = note_stamp(want.value, is.value, progress); !why.empty()) return why;
      continue;
    }
    for (auto& [left, right] : want.blocks) left += kRemoteIsn, right += kRemoteIsn;
    if (want != is) return "the options differ";
  }
  return "";
}

// The timestamp clock of either target runs at 1 kHz.
std::string Peer::note_stamp(std::uint32_t name, std::uint32_t live, const Progress& progress) {
  using std::chrono::milliseconds;
  stamps_[name] = live;
  if (!first_stamp_) {
    first_stamp_ = Stamp{name, live, progress.when};
    return "";
  }
  const std::int64_t passed = (progress.when - first_stamp_->when) / milliseconds(1);
  const std::int64_t counted = static_cast<std::int32_t>(live - first_stamp_->live);
  if (std::abs(counted - passed) <= progress.tolerance / milliseconds(1) + 1) return "";
  return "TSval has advanced by " + std::to_string(counted) + " in " + std::to_string(passed) + " ms";
}

std::string Peer::describe(const Segment& s) const {
  const std::uint32_t isn = learn_ && has(s, Flags::kSyn) ? s.seq : isn_;
  const std::uint32_t from = s.seq - isn;
  const auto length = static_cast<std::uint32_t>(s.payload.size());
  constexpr const char* kEcn[] = {"", "[ect1] ", "[ect0] ", "[ce] "};
  std::string out = "> ";
  if (number_ != 1) out += "[peer " + std::to_string(number_) + "] ";
  out += kEcn[s.tos & 3];
  out += flag_letters(s.flags) + " " + std::to_string(from) + ":" + std::to_string(from + length) + "(" +
         std::to_string(length) + ")";
  if (has(s, Flags::kAck)) out += " ack " + std::to_string(s.ack - kRemoteIsn);
  out += " win " + std::to_string(s.window);
  std::string options;
  for (const Option& option : s.options) options += (options.empty() ? "" : ",") + describe(option);
  return options.empty() ? out : out + " <" + options + ">";
}

std::string Peer::describe(const Option& option) const {
  using Kind = Option::Kind;
  std::string out;
  switch (option.kind) {
    case Kind::mss:
      return "mss " + std::to_string(option.value);
    case Kind::wscale:
      return "wscale " + std::to_string(option.value);
    case Kind::sack_permitted:
      return "sackOK";
    case Kind::timestamps:
      return "TS val " +
             std::to_string(first_stamp_ ? option.value - first_stamp_->live + first_stamp_->name
                                         : option.value) +
             " ecr " + std::to_string(option.echo);
    case Kind::sack:
      out = "sack";
      for (const auto& [left, right] : option.blocks)
        out += " " + std::to_string(left - kRemoteIsn) + ":" + std::to_string(right - kRemoteIsn);
      return out;
    case Kind::nop:
      return "nop";
    case Kind::end:
      return "eol";
    case Kind::raw:
      break;
  }
  out = "raw ";
  for (const std::byte byte : option.bytes) {
    char text[4];
    std::snprintf(text, sizeof text, "%02x", std::to_integer<unsigned>(byte));
    out += text;
  }
  return out;
}

}  // namespace netchannel::testkit::script
