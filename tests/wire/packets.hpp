// What the tests of this room share: packets as hex, small changes to them, and well-formed packets made from
// reprs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/icmp.hpp"
#include "netchannel/wire/icmpv6.hpp"
#include "netchannel/wire/ipv4.hpp"
#include "netchannel/wire/ipv6.hpp"
#include "netchannel/wire/tcp.hpp"
#include "netchannel/wire/udp.hpp"

namespace netchannel::wire::test {

using Buffer = std::vector<std::byte>;

// Hex digits; spaces are for the reader.
Buffer hex(std::string_view digits);

// `count` bytes that differ from each other.
Buffer filler(std::size_t count);

Buffer operator+(Buffer left, const Buffer& right);

// `bytes` with some bytes set: {offset, value}.
Buffer patched(Buffer bytes, std::initializer_list<std::pair<std::size_t, std::uint8_t>> changes);

// The first `count` bytes.
Buffer cut(const Buffer& bytes, std::size_t count);

inline constexpr MacAddress kOurMac{{2, 0, 0, 0, 0, 1}}, kPeerMac{{2, 0, 0, 0, 0, 2}};
inline constexpr IpAddress kOur4 = IpAddress::v4(10, 9, 0, 1), kPeer4 = IpAddress::v4(10, 9, 0, 2);
inline constexpr IpAddress kOur6 = IpAddress::v6({0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
inline constexpr IpAddress kPeer6 = IpAddress::v6({0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});
inline constexpr std::uint16_t kOurPort = 7000, kPeerPort = 40000;

// An Ethernet header to us in front of `l3`.
Buffer frame(EtherType type, const Buffer& l3, const VlanTags& tags = {});

// IP from the peer to us around `payload`.
Buffer ipv4(Protocol protocol, const Buffer& payload, Ipv4Repr repr = {});
Buffer ipv6(std::uint8_t next_header, const Buffer& payload, Ipv6Repr repr = {});

// UDP from the peer's port to ours, its checksum right for the IP version.
Buffer udp4(const Buffer& payload);
Buffer udp6(const Buffer& payload);
// TCP likewise; 20 bytes of header and the options as they are.
Buffer tcp4(TcpFlags flags, const Buffer& raw_options, const Buffer& payload);
Buffer tcp6(TcpFlags flags, const Buffer& payload);
// Errors to us.
Buffer icmp4(const IcmpRepr& repr, const Buffer& payload);
Buffer icmp6(const Icmpv6Repr& repr, const Buffer& payload);

// A UDP packet that we have sent, for errors to quote.
Buffer sent_udp4();
Buffer sent_udp6();

}  // namespace netchannel::wire::test
