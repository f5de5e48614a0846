// The form of a TCP segment (RFC 9293 section 3.1) and its options: MSS, window scale and timestamps (RFC
// 7323), SACK (RFC 2018). What a segment means to a connection is proto's; here only what can be said of it
// alone.
//
// Options are parsed once, into TcpOptions, under these rules: an option of a wrong length is ignored, of two
// of a kind the first holds, MSS, window scale and SACK-permitted hold only on a SYN, a shift above 14 is 14,
// an unknown kind (MD5 and AO among them) is skipped. A length of 0, 1 or past the header ends the options
// and is told as `malformed`; what came before holds and the segment lives on (RFC 9293 MUST-7), for a forged
// option must not end a connection.
#pragma once

#include <algorithm>
#include <optional>

#include "netchannel/wire/checksum.hpp"
#include "netchannel/wire/parsed.hpp"

namespace netchannel::wire {

inline constexpr std::size_t kTcpMinHeaderSize = 20;
inline constexpr std::size_t kTcpMaxOptionsSize = 40;
inline constexpr std::size_t kMaxSackBlocks = 4;
inline constexpr std::uint8_t kMaxWindowScale = 14;  // RFC 7323 section 2.3
// The least MSS that is believed: below it a byte of data costs more than a header (CVE-2019-11479).
inline constexpr std::uint16_t kMinMss = 48;

struct TcpFlags {
  std::uint8_t bits = 0;
  static constexpr std::uint8_t kFin = 1, kSyn = 2, kRst = 4, kPsh = 8, kAck = 16, kUrg = 32, kEce = 64,
                                kCwr = 128;
  constexpr bool fin() const { return (bits & kFin) != 0; }
  constexpr bool syn() const { return (bits & kSyn) != 0; }
  constexpr bool rst() const { return (bits & kRst) != 0; }
  constexpr bool psh() const { return (bits & kPsh) != 0; }
  constexpr bool ack() const { return (bits & kAck) != 0; }
  constexpr bool urg() const { return (bits & kUrg) != 0; }
  constexpr bool ece() const { return (bits & kEce) != 0; }
  constexpr bool cwr() const { return (bits & kCwr) != 0; }
  friend constexpr bool operator==(const TcpFlags&, const TcpFlags&) = default;
};

struct TcpOptionKind {
  static constexpr std::uint8_t kMss = 2, kWindowScale = 3, kSackPermitted = 4, kSack = 5, kTimestamps = 8;
};

class TcpView {
 public:
  // `bytes` is the IP payload.
  static constexpr Parsed<TcpView> parse(Bytes bytes) {
    if (bytes.size() < kTcpMinHeaderSize) return drop(DropReason::tcp_truncated);
    const std::size_t header = (load_u8(bytes, 12) >> 4) * std::size_t{4};
    if (header < kTcpMinHeaderSize || header > bytes.size()) return drop(DropReason::tcp_bad_offset);
    if (load_be16(bytes, 0) == 0 || load_be16(bytes, 2) == 0) return drop(DropReason::tcp_bad_port);
    return TcpView(bytes);
  }

  constexpr std::uint16_t source_port() const { return load_be16(bytes_, 0); }
  constexpr std::uint16_t destination_port() const { return load_be16(bytes_, 2); }
  constexpr std::uint32_t sequence() const { return load_be32(bytes_, 4); }
  constexpr std::uint32_t acknowledgment() const { return load_be32(bytes_, 8); }
  constexpr std::size_t header_length() const { return (load_u8(bytes_, 12) >> 4) * std::size_t{4}; }
  constexpr TcpFlags flags() const { return {load_u8(bytes_, 13)}; }
  constexpr std::uint16_t window() const { return load_be16(bytes_, 14); }
  constexpr std::uint16_t checksum_field() const { return load_be16(bytes_, 16); }
  constexpr std::uint16_t urgent_pointer() const { return load_be16(bytes_, 18); }
  // Bytes of this segment that the urgent pointer covers: 0 without URG, never more than there are.
  constexpr std::size_t urgent_length() const {
    return flags().urg() ? std::min<std::size_t>(urgent_pointer(), payload().size()) : 0;
  }
  // Sequence numbers it takes (RFC 9293 SEG.LEN): data, SYN and FIN.
  constexpr std::uint32_t sequence_length() const {
    return static_cast<std::uint32_t>(payload().size()) + (flags().syn() ? 1 : 0) + (flags().fin() ? 1 : 0);
  }
  constexpr Bytes option_bytes() const {
    return bytes_.subspan(kTcpMinHeaderSize, header_length() - kTcpMinHeaderSize);
  }
  // As they stand, unknown ones too; may end malformed.
  constexpr OptionCursor options() const { return OptionCursor(option_bytes()); }
  constexpr Bytes payload() const { return bytes_.subspan(header_length()); }
  constexpr Bytes segment() const { return bytes_; }  // header and payload

 private:
  constexpr explicit TcpView(Bytes bytes) : bytes_(bytes) {}
  Bytes bytes_;
};

inline bool verify_checksum(const TcpView& view, const IpAddress& source, const IpAddress& destination) {
  PartialSum sum = pseudo_header(source, destination, Protocol::tcp, view.segment().size());
  sum.add(checksum_fast(view.segment()));
  return fold(sum) == 0xffff;
}

// True if the sender left the checksum to its device; see is_partial_checksum().
inline bool has_partial_checksum(const TcpView& view, const IpAddress& source, const IpAddress& destination) {
  return is_partial_checksum(view.checksum_field(),
                             pseudo_header(source, destination, Protocol::tcp, view.segment().size()));
}

struct TcpTimestamps {
  std::uint32_t value = 0;  // TSval
  std::uint32_t echo = 0;   // TSecr
  friend constexpr bool operator==(const TcpTimestamps&, const TcpTimestamps&) = default;
};

// [left, right) in sequence space, as it stands: whether it makes sense is the sender's question (RFC 6675).
struct SackBlock {
  std::uint32_t left = 0, right = 0;
  friend constexpr bool operator==(const SackBlock&, const SackBlock&) = default;
};

struct TcpOptions {
  std::optional<std::uint16_t> mss{};          // on a SYN; as it stands, see usable_mss()
  std::optional<std::uint8_t> window_scale{};  // on a SYN; 0 to 14
  bool sack_permitted = false;                 // on a SYN
  std::optional<TcpTimestamps> timestamps{};
  FixedList<SackBlock, kMaxSackBlocks> sack{};
  friend constexpr bool operator==(const TcpOptions&, const TcpOptions&) = default;

  // The bytes that emit() takes, a multiple of 4 and at most 40.
  std::size_t size() const;
  // Writes size() bytes. SACK blocks that do not fit into 40 bytes are left out, the last first. Numbers
  // stand on 4-byte boundaries unless that would cost a block.
  void emit(MutableBytes out) const;
};

struct ParsedTcpOptions {
  TcpOptions options{};
  bool malformed = false;
};
ParsedTcpOptions parse_options(const TcpView& view);

// What to send with, whatever a peer has said: never below the floor, so never 0.
constexpr std::uint16_t usable_mss(std::uint16_t said) { return std::max(said, kMinMss); }

// Unknown options are not kept.
struct TcpRepr {
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  std::uint32_t sequence = 0;
  std::uint32_t acknowledgment = 0;
  TcpFlags flags{};
  std::uint16_t window = 0;
  std::uint16_t urgent_pointer = 0;
  TcpOptions options{};

  static TcpRepr from(const TcpView& view);
  std::size_t size() const { return kTcpMinHeaderSize + options.size(); }
  // Writes the header with a checksum field of 0. `out` has at least size() bytes.
  void emit(MutableBytes out) const;
  // Writes the header with its checksum over itself and `rest_of_sum`: the pseudo-header (its length counts
  // header and payload) and the payload.
  void emit(MutableBytes out, PartialSum rest_of_sum) const;
  friend bool operator==(const TcpRepr&, const TcpRepr&) = default;
};

}  // namespace netchannel::wire
