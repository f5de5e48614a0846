// The columns that netperf's readers know, one test a path. Deviations from netperf: the processor time is
// that of the two programs only and stands once, as service demand; both ends run on one machine in a lab, so
// there is no local and remote.
#include <fmt/format.h>

#include <array>

#include "report/view.hpp"

namespace netchannel::report {
namespace {

std::string_view name_of(const CellView& cell) {
  constexpr std::array kNames = {
      std::pair{"udp_rr", "UDP REQUEST/RESPONSE"}, std::pair{"udp_stream", "UDP UNIDIRECTIONAL SEND"},
      std::pair{"tcp_rr", "TCP REQUEST/RESPONSE"}, std::pair{"tcp_stream", "TCP STREAM"},
      std::pair{"tcp_crr", "TCP Connect/Request/Response"}};
  for (const auto& [workload, name] : kNames) {
    if (cell.workload == workload) return name;
  }
  return cell.workload;
}

std::string rr(const CellView& cell, const Row& row) {
  return fmt::format(
      "{} TEST over {} ({})\n"
      "Request  Resp.    Trans.      P50      P99      S.dem\n"
      "Size     Size     Rate        Latency  Latency  own\n"
      "bytes    bytes    per sec     usec     usec     us/Tr\n\n"
      "{:<8} {:<8} {:<11} {:<8} {:<8} {}\n\n",
      name_of(cell), row.path, row.wait, cell.size, cell.size, fixed(row.mean("rate_per_s"), 2),
      fixed(row.median_of_all("latency_p50_us"), 2), fixed(row.median_of_all("latency_p99_us"), 2),
      fixed(row.mean("service_demand_own_us"), 3));
}

// netperf's service demand is per KB of 1024 bytes: here of those received.
std::string stream(const CellView& cell, const Row& row) {
  const auto bps = row.mean("received_bps"), loss = row.mean("loss_share");
  auto per_kb = row.mean("service_demand_own_us");
  if (cell.workload != "tcp_stream") {
    per_kb = per_kb && cell.size > 0 ? std::optional(*per_kb * 1024 / static_cast<double>(cell.size))
                                     : std::nullopt;
  }
  return fmt::format(
      "{} TEST over {} ({})\n"
      "Message  Received    Throughput  Lost    S.dem\n"
      "Size     Rate        received            own\n"
      "bytes    per sec     10^6bits/s  %       us/KB\n\n"
      "{:<8} {:<11} {:<11} {:<7} {}\n\n",
      name_of(cell), row.path, row.wait, cell.size, fixed(row.mean("rate_per_s"), 0),
      bps ? fixed(*bps / 1e6, 2) : "-", loss ? fixed(*loss * 100, 2) : "-", fixed(per_kb, 3));
}

}  // namespace

std::string render_netperf(const Json& document) {
  std::string out;
  for (const CellView& cell : cells_of(document)) {
    for (const Row& row : cell.rows) out += is_request(cell.workload) ? rr(cell, row) : stream(cell, row);
  }
  return out;
}

}  // namespace netchannel::report
