// What every parser of this room returns, and the two small things the parsers share: a list of fixed
// capacity (no allocation on the packet path) and a walk over kind-length-value options (IPv4 and TCP have
// the same form).
//
// The rule of the room: a View can be made only by its static parse(), which compares every length from the
// wire with the bytes present; after that no getter can fail or read outside. A Repr is the plain value of a
// header: comparable, from(view) reads it, emit() writes it, and parse(emit(x)) == x. Checksums are separate
// calls, since the device may have done them. Nothing here allocates, throws, or knows an operating system.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <tl/expected.hpp>

#include "netchannel/bytes.hpp"
#include "netchannel/drop_reason.hpp"

namespace netchannel::wire {

template <class T>
using Parsed = tl::expected<T, DropReason>;

constexpr tl::unexpected<DropReason> drop(DropReason reason) { return tl::unexpected<DropReason>(reason); }

// Up to N values in place. Two lists are equal if their used parts are.
template <class T, std::size_t N>
class FixedList {
 public:
  static constexpr std::size_t capacity() { return N; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  // The caller has checked that size() < capacity().
  constexpr void push_back(const T& value) {
    assert(size_ < N);
    items_[size_++] = value;
  }
  constexpr void clear() { size_ = 0; }
  constexpr const T& operator[](std::size_t i) const { return items_[i]; }
  constexpr T& operator[](std::size_t i) { return items_[i]; }
  constexpr const T* begin() const { return items_.data(); }
  constexpr const T* end() const { return items_.data() + size_; }
  friend constexpr bool operator==(const FixedList& a, const FixedList& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i) {
      if (!(a.items_[i] == b.items_[i])) return false;
    }
    return true;
  }

 private:
  std::array<T, N> items_{};
  std::size_t size_ = 0;
};

// One option: its kind and its data, without the two bytes of kind and length.
struct Option {
  std::uint8_t kind = 0;
  Bytes data;
};

// Walks options of the form of RFC 791 and RFC 9293: kind 0 ends the list, kind 1 is one byte of padding,
// every other kind has a length that counts itself and the kind. Each step moves at least one byte on, so the
// walk ends. A length of 0 or 1, or past the end, stops it and sets malformed().
class OptionCursor {
 public:
  constexpr explicit OptionCursor(Bytes options) : rest_(options) {}

  constexpr std::optional<Option> next() {
    while (!rest_.empty()) {
      const std::uint8_t kind = load_u8(rest_, 0);
      if (kind == 0) break;
      if (kind == 1) {
        rest_ = rest_.subspan(1);
        continue;
      }
      const std::size_t length = rest_.size() < 2 ? 0 : load_u8(rest_, 1);
      if (length < 2 || length > rest_.size()) {
        malformed_ = true;
        break;
      }
      const Option option{kind, rest_.subspan(2, length - 2)};
      rest_ = rest_.subspan(length);
      return option;
    }
    rest_ = {};
    return std::nullopt;
  }
  constexpr bool malformed() const { return malformed_; }

 private:
  Bytes rest_;
  bool malformed_ = false;
};

}  // namespace netchannel::wire
