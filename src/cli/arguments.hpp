// Values of options that several commands share, from text. Each throws UsageError with a sentence that names
// the option.
#pragma once

#include <string>
#include <vector>

#include "bench/options.hpp"
#include "lab/plan.hpp"
#include "netchannel/host.hpp"

namespace netchannel::cli {

bench::Workload workload_from(const std::string& name);
bench::Lane lane_from(const std::string& name);
std::vector<bench::Lane> lanes_from(const std::vector<std::string>& names);
WaitMode wait_from(const std::string& option, const std::string& name);
IpAddress address_from(const std::string& option, const std::string& text);
// "ADDR", "ADDR:PORT" or "[ADDR6]:PORT".
Endpoint endpoint_from(const std::string& option, const std::string& text, std::uint16_t default_port);
// "250us", "10ms", "1.5s"; a plain number is seconds.
Duration duration_from(const std::string& option, const std::string& text);
XdpOptions::Mode xdp_mode_from(const std::string& name);

// Which TAP of which lab a process stands on: "NAME/a" or "NAME/b".
struct TapSeat {
  lab::Side side = lab::Side::a;
  lab::TapPlan plan;
};
TapSeat tap_seat_from(const std::string& text);

// An interface for a path that needs one and was given none: that towards the peer, else the system's only
// one.
std::string device_for(const bench::Lane& lane, const std::string& given, const IpAddress* peer);

}  // namespace netchannel::cli
