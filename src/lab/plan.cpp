#include "lab/plan.hpp"

#include <array>

namespace netchannel::lab {

namespace {

// FNV-1a: the same on every machine and in every run.
unsigned number_of(std::string_view name) {
  if (name == "default") return 1;
  std::uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return 2 + hash % 253;
}

IpAddress v4_of(unsigned second, unsigned third, unsigned last) {
  return IpAddress::v4(10, static_cast<std::uint8_t>(second), static_cast<std::uint8_t>(third),
                       static_cast<std::uint8_t>(last));
}

// The first four groups and the last one.
IpAddress v6_of(const std::array<unsigned, 4>& groups, unsigned last) {
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    bytes[2 * i] = static_cast<std::uint8_t>(groups[i] >> 8);
    bytes[2 * i + 1] = static_cast<std::uint8_t>(groups[i] & 0xff);
  }
  bytes[15] = static_cast<std::uint8_t>(last);
  return IpAddress::v6(bytes);
}

constexpr unsigned kVeth4 = 77, kTap4 = 78;          // second byte
constexpr unsigned kVeth6 = 0xfd77, kTap6 = 0xfd78;  // first group

unsigned first_tap_v4(Side side) { return side == Side::a ? 0 : 128; }
unsigned first_tap_v6(Side side) { return side == Side::a ? 0xa00 : 0xb00; }

}  // namespace

std::optional<Side> parse_side(std::string_view text) {
  if (text == "a") return Side::a;
  if (text == "b") return Side::b;
  return std::nullopt;
}

std::string_view to_string(Side side) { return side == Side::a ? "a" : "b"; }

Plan::Plan(std::string_view name) : name_(name), number_(number_of(name)) {}

std::string Plan::namespace_name(Side side) const {
  return "nc" + name_ + "-" + std::string(to_string(side));
}

Prefix Plan::v4(Side side) const { return {v4_of(kVeth4, number_, side == Side::a ? 1 : 2), 24}; }
Prefix Plan::v6(Side side) const { return {v6_of({kVeth6, 0, 0, number_}, side == Side::a ? 1 : 2), 64}; }
Prefix Plan::link_v4() const { return {v4_of(kVeth4, number_, 0), 24}; }
Prefix Plan::link_v6() const { return {v6_of({kVeth6, 0, 0, number_}, 0), 64}; }

TapPlan Plan::tap(Side side, unsigned index) const {
  const unsigned subnet4 = first_tap_v4(side) + 4 * index;
  const std::array<unsigned, 4> subnet6{kTap6, 0, number_, first_tap_v6(side) + index};
  return {.kernel_v4 = {v4_of(kTap4, number_, subnet4 + 1), 30},
          .kernel_v6 = {v6_of(subnet6, 1), 64},
          .stack_v4 = {v4_of(kTap4, number_, subnet4 + 2), 30},
          .stack_v6 = {v6_of(subnet6, 2), 64}};
}

Prefix Plan::taps_v4(Side side) const { return {v4_of(kTap4, number_, first_tap_v4(side)), 25}; }
Prefix Plan::taps_v6(Side side) const { return {v6_of({kTap6, 0, number_, first_tap_v6(side)}, 0), 56}; }

}  // namespace netchannel::lab
