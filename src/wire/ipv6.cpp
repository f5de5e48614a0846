// The walk over IPv6 extension headers. Bounded twice: by the number of headers and, inside each, by its own
// bytes; a header's length is at least 8 and an option's at least 1, so every step moves on.
#include "netchannel/wire/ipv6.hpp"

namespace netchannel::wire {
namespace {

constexpr std::uint8_t kPad1 = 0, kPadN = 1;
constexpr std::size_t kMostPadding = 7;

class Walk {
 public:
  Walk(std::uint8_t next, Bytes bytes) : bytes_(bytes), next_(next) {}

  Parsed<Ipv6Chain> run() {
    for (int walked = 0; walked < kMaxIpv6Extensions; ++walked) {
      if (!is_ipv6_extension(next_)) return end();
      const std::uint8_t kind = next_;
      if (!in_place(kind, walked)) return drop(DropReason::ipv6_too_many_extensions);
      if (const auto passed = pass(kind); !passed) return drop(passed.error());
      if (chain_.fragment && chain_.fragment->offset != 0) return chain_;
    }
    return is_ipv6_extension(next_) ? drop(DropReason::ipv6_too_many_extensions) : end();
  }

 private:
  // RFC 8200 section 4.1: hop-by-hop options first or not at all; each header once, destination options
  // twice.
  bool in_place(std::uint8_t kind, int walked) {
    switch (kind) {
      case Ipv6NextHeader::kHopByHop:
        return walked == 0;
      case Ipv6NextHeader::kRouting:
        return ++routing_ <= 1;
      case Ipv6NextHeader::kFragment:
        return ++fragment_ <= 1;
      default:
        return ++destination_ <= 2;
    }
  }

  Parsed<void> pass(std::uint8_t kind) {
    const Bytes rest = bytes_.subspan(at_);
    if (rest.size() < 8) return drop(cut_off());
    // Units of 8 bytes, the first not counted; a fragment header has no length field.
    const bool fixed = kind == Ipv6NextHeader::kFragment;
    const std::size_t length = fixed ? kIpv6FragmentHeaderSize : 8 + std::size_t{load_u8(rest, 1)} * 8;
    if (length > rest.size()) return drop(cut_off());
    const Bytes header = rest.first(length);
    const auto passed = kind == Ipv6NextHeader::kFragment  ? pass_fragment(header)
                        : kind == Ipv6NextHeader::kRouting ? pass_routing(header)
                                                           : pass_options(header);
    if (!passed) return passed;
    next_ = load_u8(header, 0);
    at_ += length;
    if (kind == Ipv6NextHeader::kFragment || !chain_.fragment) place_payload();
    return {};
  }

  Parsed<void> pass_fragment(Bytes header) {
    const FragmentInfo fragment = load_ipv6_fragment(header, 0);
    // RFC 6946: offset 0 and nothing more is a whole packet, whatever its identification.
    if (fragment.offset != 0 || fragment.more) chain_.fragment = fragment;
    return {};
  }

  static Parsed<void> pass_routing(Bytes header) {
    const std::uint8_t type = load_u8(header, 2), segments_left = load_u8(header, 3);
    if (type == 0) return drop(DropReason::ipv6_routing_header_0);
    // RFC 8200 section 4.4: a type that we do not know is ignored only if no address is left to visit.
    if (segments_left != 0) return drop(DropReason::ipv6_routing_unknown);
    return {};
  }

  Parsed<void> pass_options(Bytes header) {
    std::size_t padding = 0;
    for (std::size_t at = 2; at < header.size();) {
      const std::uint8_t type = load_u8(header, at);
      if (type != kPad1 && header.size() - at < 2) return drop(DropReason::ipv6_bad_option);
      const std::size_t length = type == kPad1 ? 1 : 2 + std::size_t{load_u8(header, at + 1)};
      if (length > header.size() - at) return drop(DropReason::ipv6_bad_option);
      padding = type == kPad1 || type == kPadN ? padding + length : 0;
      if (padding > kMostPadding) return drop(DropReason::ipv6_bad_option);
      const Ipv6OptionAction action = ipv6_option_action(type);
      if (action != Ipv6OptionAction::skip && !chain_.unknown_option) {
        chain_.unknown_option = Ipv6UnknownOption{action, static_cast<std::uint32_t>(at_ + at)};
      }
      at += length;
    }
    return {};
  }

  void place_payload() {
    chain_.protocol = Protocol{next_};
    chain_.length = at_;
  }

  // The chain is complete; of a first fragment the transport header must be too (RFC 7112).
  Parsed<Ipv6Chain> end() {
    if (!chain_.fragment) place_payload();
    if (chain_.fragment && bytes_.size() - at_ < least_transport_header(Protocol{next_})) {
      return drop(DropReason::frag_tiny_first);
    }
    return chain_;
  }

  DropReason cut_off() const {
    return chain_.fragment ? DropReason::frag_tiny_first : DropReason::ipv6_bad_extension;
  }

  Bytes bytes_;
  std::uint8_t next_;  // the type of the header at at_
  std::size_t at_ = 0;
  int routing_ = 0, fragment_ = 0, destination_ = 0;
  Ipv6Chain chain_;
};

}  // namespace

Parsed<Ipv6Chain> walk_ipv6_extensions(std::uint8_t next_header, Bytes bytes) {
  return Walk(next_header, bytes).run();
}

}  // namespace netchannel::wire
