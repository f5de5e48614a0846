// ICMP (RFC 792): echo, and the errors that a host must hear: unreachable with its MTU (RFC 1191), time
// exceeded, parameter problem. Every message has eight bytes of header; what the last four mean depends on
// the type, so a getter says for which types it holds. Other types (redirect, source quench) parse and are
// ignored by who reads them. The quoted packet of an error is QuotedPacket's. The checksum is a separate
// call, over the bytes present.
#pragma once

#include "netchannel/wire/checksum.hpp"
#include "netchannel/wire/parsed.hpp"
#include "netchannel/wire/quote.hpp"

namespace netchannel::wire {

inline constexpr std::size_t kIcmpHeaderSize = 8;

enum class IcmpType : std::uint8_t {
  echo_reply = 0,
  unreachable = 3,
  source_quench = 4,
  redirect = 5,
  echo_request = 8,
  time_exceeded = 11,
  parameter_problem = 12,
};

// Codes of unreachable that a socket tells apart (RFC 792, RFC 1122 section 3.2.2.1).
struct IcmpUnreachable {
  static constexpr std::uint8_t kNetwork = 0, kHost = 1, kProtocol = 2, kPort = 3, kFragmentationNeeded = 4,
                                kSourceRouteFailed = 5;
};

class IcmpView {
 public:
  // `bytes` is the IP payload.
  static constexpr Parsed<IcmpView> parse(Bytes bytes) {
    if (bytes.size() < kIcmpHeaderSize) return drop(DropReason::icmp_truncated);
    return IcmpView(bytes);
  }

  constexpr IcmpType type() const { return IcmpType{load_u8(bytes_, 0)}; }
  constexpr std::uint8_t code() const { return load_u8(bytes_, 1); }
  constexpr std::uint16_t checksum_field() const { return load_be16(bytes_, 2); }
  constexpr std::uint32_t rest() const { return load_be32(bytes_, 4); }
  // Of echo.
  constexpr std::uint16_t identifier() const { return load_be16(bytes_, 4); }
  constexpr std::uint16_t sequence() const { return load_be16(bytes_, 6); }
  // Of unreachable, fragmentation needed: 0 from routers older than RFC 1191. Untrusted: never raise a path's
  // MTU by it.
  constexpr std::uint16_t mtu() const { return load_be16(bytes_, 6); }
  // Of parameter problem: the offset of the byte at fault.
  constexpr std::uint8_t pointer() const { return load_u8(bytes_, 4); }
  // True if payload() quotes a packet of ours and somebody should hear of it.
  constexpr bool is_error() const {
    return type() == IcmpType::unreachable || type() == IcmpType::time_exceeded ||
           type() == IcmpType::parameter_problem;
  }
  // Of echo its data, of an error the quoted packet.
  constexpr Bytes payload() const { return bytes_.subspan(kIcmpHeaderSize); }
  constexpr Bytes message() const { return bytes_; }

 private:
  constexpr explicit IcmpView(Bytes bytes) : bytes_(bytes) {}
  Bytes bytes_;
};

inline bool verify_checksum(const IcmpView& view) { return fold(checksum_fast(view.message())) == 0xffff; }

struct IcmpRepr {
  IcmpType type = IcmpType::echo_request;
  std::uint8_t code = 0;
  std::uint32_t rest = 0;  // the header's last four bytes, as the type says

  static constexpr IcmpRepr echo_request(std::uint16_t identifier, std::uint16_t sequence) {
    return {IcmpType::echo_request, 0, std::uint32_t{identifier} << 16 | sequence};
  }
  static constexpr IcmpRepr echo_reply(std::uint16_t identifier, std::uint16_t sequence) {
    return {IcmpType::echo_reply, 0, std::uint32_t{identifier} << 16 | sequence};
  }
  static constexpr IcmpRepr unreachable(std::uint8_t code) { return {IcmpType::unreachable, code, 0}; }
  static constexpr IcmpRepr fragmentation_needed(std::uint16_t mtu) {
    return {IcmpType::unreachable, IcmpUnreachable::kFragmentationNeeded, mtu};
  }
  static constexpr IcmpRepr time_exceeded(std::uint8_t code) { return {IcmpType::time_exceeded, code, 0}; }
  static constexpr IcmpRepr parameter_problem(std::uint8_t pointer) {
    return {IcmpType::parameter_problem, 0, std::uint32_t{pointer} << 24};
  }

  static constexpr IcmpRepr from(const IcmpView& view) { return {view.type(), view.code(), view.rest()}; }
  static constexpr std::size_t size() { return kIcmpHeaderSize; }
  // Writes the header with its checksum over itself and `payload`, the sum of the bytes that follow it. `out`
  // has at least size() bytes.
  constexpr void emit(MutableBytes out, PartialSum payload = {}) const {
    assert(out.size() >= size());
    store_u8(out, 0, static_cast<std::uint8_t>(type));
    store_u8(out, 1, code);
    store_be16(out, 2, 0);
    store_be32(out, 4, rest);
    PartialSum sum = checksum_scalar(out.first(size()));
    sum.add(payload);
    store_be16(out, 2, checksum(sum));
  }
  friend constexpr bool operator==(const IcmpRepr&, const IcmpRepr&) = default;
};

}  // namespace netchannel::wire
