#include "cli/arguments.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "cli/commands.hpp"
#include "control/route_to.hpp"

namespace netchannel::cli {

bench::Workload workload_from(const std::string& name) {
  const auto workload = bench::parse_workload(name);
  if (!workload) throw UsageError{fmt::format("no workload '{}'; there are {}", name, bench::kWorkloadNames)};
  return *workload;
}

bench::Lane lane_from(const std::string& name) {
  const auto lane = bench::parse_lane(name);
  if (!lane) throw UsageError{fmt::format("no path '{}'; there are {}", name, bench::kLaneNames)};
  return *lane;
}

std::vector<bench::Lane> lanes_from(const std::vector<std::string>& names) {
  std::vector<bench::Lane> lanes;
  for (const std::string& name : names) {
    lanes.push_back(lane_from(name));
    if (lanes.back().path == Path::automatic) {
      throw UsageError{fmt::format("a comparison needs its paths by name; there are {}", bench::kLaneNames)};
    }
  }
  return lanes;
}

WaitMode wait_from(const std::string& option, const std::string& name) {
  const auto wait = parse_wait_mode(name);
  if (!wait)
    throw UsageError{
        fmt::format("{}: no way to wait is called '{}'; there are block, spin and adaptive", option, name)};
  return *wait;
}

IpAddress address_from(const std::string& option, const std::string& text) {
  const auto address = IpAddress::parse(text);
  if (!address) throw UsageError{fmt::format("{}: '{}' is not an IPv4 or IPv6 address", option, text)};
  return *address;
}

Endpoint endpoint_from(const std::string& option, const std::string& text, std::uint16_t default_port) {
  if (const auto address = IpAddress::parse(text)) return {*address, default_port};
  const auto endpoint = Endpoint::parse(text);
  if (!endpoint)
    throw UsageError{fmt::format(
        "{}: '{}' is not an address; write 192.0.2.1, 192.0.2.1:4170 or [2001:db8::1]:4170", option, text)};
  return *endpoint;
}

Duration duration_from(const std::string& option, const std::string& text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  constexpr std::array kUnits = {std::pair{std::string_view("ns"), 1.0},
                                 std::pair{std::string_view("us"), 1e3},
                                 std::pair{std::string_view("ms"), 1e6},
                                 std::pair{std::string_view("s"), 1e9}, std::pair{std::string_view(""), 1e9}};
  for (const auto& [name, factor] : kUnits) {
    if (status == std::errc{} && unit == name && value >= 0 && value * factor < 1e12) {
      return Duration(static_cast<std::int64_t>(value * factor));
    }
  }
  throw UsageError{fmt::format("{}: '{}' is not a time; write 250us, 10ms or 1s", option, text)};
}

XdpOptions::Mode xdp_mode_from(const std::string& name) {
  if (name == "auto") return XdpOptions::Mode::automatic;
  if (name == "native") return XdpOptions::Mode::native;
  if (name == "generic") return XdpOptions::Mode::generic;
  throw UsageError{
      fmt::format("--xdp-mode: no mode is called '{}'; there are auto, native and generic", name)};
}

TapSeat tap_seat_from(const std::string& text) {
  const auto slash = text.rfind('/');
  const auto side = slash == std::string::npos ? std::nullopt : lab::parse_side(text.substr(slash + 1));
  if (!side) throw UsageError{fmt::format("--tap-seat: '{}' is not LAB/a or LAB/b", text)};
  return {*side, lab::Plan(text.substr(0, slash)).tap(*side)};
}

std::string device_for(const bench::Lane& lane, const std::string& given, const IpAddress* peer) {
  if (!given.empty() || !lane.shares_interface()) return given;
  if (peer != nullptr) {
    if (const auto route = control::interface_for(*peer); route && !route->local)
      return route->interface_name;
  }
  const auto only = control::default_interface();
  return only ? *only : "";
}

}  // namespace netchannel::cli
