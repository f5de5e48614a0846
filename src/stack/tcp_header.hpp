// The headers of one TCP segment, Ethernet to options, written once for whatever SegmentOut holds and stamped
// for each packet that is cut from it: length, sequence number, flags and checksums differ, nothing else.
//
//   | Ethernet 14 | IPv4 20 or IPv6 40 | TCP 20 to 60 | payload
//   |<---------------- TcpHeader ----------------->|
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "netchannel/address.hpp"
#include "netchannel/wire/checksum.hpp"
#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/ipv4.hpp"
#include "netchannel/wire/ipv6.hpp"
#include "netchannel/wire/tcp.hpp"
#include "proto/tcp/segment.hpp"

namespace netchannel::stack {

// From where to where a segment goes, and through which door.
struct TcpPath {
  Endpoint local, peer;
  MacAddress from, to;
  std::uint8_t ttl = 64, tos = 0;
};

class TcpHeader {
 public:
  static constexpr std::size_t kMaxSize =
      wire::kEthernetHeaderSize + wire::kIpv6HeaderSize + wire::kTcpMinHeaderSize + wire::kTcpMaxOptionsSize;

  TcpHeader(const TcpPath& path, const tcp::SegmentOut& segment) {
    const bool v4 = path.peer.address.is_v4();
    const MutableBytes out(bytes_);
    wire::EthernetRepr{path.to, path.from, v4 ? wire::EtherType::ipv4 : wire::EtherType::ipv6, {}}.emit(out);
    const MutableBytes l3 = out.subspan(wire::kEthernetHeaderSize);
    const auto tos = static_cast<std::uint8_t>((path.tos & ~3) | static_cast<std::uint8_t>(segment.ecn));
    if (v4) {
      // RFC 6864 section 4.1: with DF set the identification means nothing, so it is 0.
      wire::Ipv4Repr{.source = path.local.address,
                     .destination = path.peer.address,
                     .protocol = Protocol::tcp,
                     .ttl = path.ttl,
                     .tos = tos,
                     .dont_fragment = true,
                     .options = {}}
          .emit(l3);
      l4_ = wire::kEthernetHeaderSize + wire::kIpv4MinHeaderSize;
      store_be16(l3, 2, 0);
      store_be16(l3, 10, 0);
      ip_sum_ = wire::checksum_scalar(l3.first(wire::kIpv4MinHeaderSize)).words;
    } else {
      wire::Ipv6Repr{.source = path.local.address,
                     .destination = path.peer.address,
                     .next_header = static_cast<std::uint8_t>(Protocol::tcp),
                     .hop_limit = path.ttl,
                     .traffic_class = tos}
          .emit(l3);
      l4_ = wire::kEthernetHeaderSize + wire::kIpv6HeaderSize;
    }
    const wire::TcpRepr tcp{.source_port = path.local.port,
                            .destination_port = path.peer.port,
                            .acknowledgment = segment.ack.value,
                            .window = segment.window,
                            .options = segment.options};
    tcp.emit(out.subspan(l4_));
    size_ = l4_ + tcp.size();
    pseudo_sum_ = wire::pseudo_header(path.local.address, path.peer.address, Protocol::tcp, 0).words;
    tcp_sum_ = pseudo_sum_ + wire::checksum_scalar(out.subspan(l4_, tcp.size())).words;
  }

  std::size_t size() const { return size_; }
  std::size_t l4_offset() const { return l4_; }

  struct Piece {
    tcp::Seq seq;
    wire::TcpFlags flags;
    std::size_t length = 0;  // of its payload
  };
  // Writes all headers to `out` (size() bytes). `sum` is the payload's.
  void stamp(MutableBytes out, const Piece& piece, wire::PartialSum sum) const {
    const std::size_t l4_length = stamp_all_but_checksum(out, piece);
    sum.words +=
        tcp_sum_ + l4_length + (piece.seq.value >> 16) + (piece.seq.value & 0xffff) + piece.flags.bits;
    store_be16(out, l4_ + 16, wire::checksum(sum));
  }
  // The checksum field gets the pseudo-header's sum only, for a device that completes it.
  void stamp_partial(MutableBytes out, const Piece& piece) const {
    const std::size_t l4_length = stamp_all_but_checksum(out, piece);
    store_be16(out, l4_ + 16, wire::fold({pseudo_sum_ + l4_length}));
  }

 private:
  std::size_t stamp_all_but_checksum(MutableBytes out, const Piece& piece) const {
    std::memcpy(out.data(), bytes_.data(), size_);
    const std::size_t l4_length = size_ - l4_ + piece.length;
    if (l4_ == wire::kEthernetHeaderSize + wire::kIpv4MinHeaderSize) {
      const auto total = static_cast<std::uint16_t>(l4_length + wire::kIpv4MinHeaderSize);
      store_be16(out, 16, total);
      store_be16(out, 24, wire::checksum({ip_sum_ + total}));
    } else {
      store_be16(out, 18, static_cast<std::uint16_t>(l4_length));
    }
    store_be32(out, l4_ + 4, piece.seq.value);
    store_u8(out, l4_ + 13, piece.flags.bits);
    return l4_length;
  }

  std::array<std::byte, kMaxSize> bytes_{};
  std::size_t l4_ = 0;
  std::size_t size_ = 0;
  std::uint64_t ip_sum_ = 0;      // IPv4 header without total length
  std::uint64_t pseudo_sum_ = 0;  // pseudo-header without length
  std::uint64_t tcp_sum_ = 0;     // and the TCP header without sequence number and flags
};

}  // namespace netchannel::stack
