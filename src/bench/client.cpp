#include "bench/client.hpp"

#include <fmt/format.h>

#include "bench/crr_client.hpp"
#include "bench/environment.hpp"
#include "bench/histogram_json.hpp"
#include "bench/message.hpp"
#include "bench/raw_transport.hpp"
#include "bench/rr_client.hpp"
#include "bench/session.hpp"
#include "bench/signals.hpp"
#include "bench/stream_sender.hpp"
#include "bench/tcp_transport.hpp"
#include "bench/udp_transport.hpp"
#include "device/clock.hpp"

namespace netchannel::bench {
namespace {

constexpr Duration kAnswerTime = std::chrono::seconds(10);
constexpr Duration kAnswerTimeAfterInterrupt = std::chrono::seconds(1);
constexpr Duration kSettleTime = std::chrono::milliseconds(20);  // for what is on its way between two phases

Json rr_part(const RrResult& result) {
  return {{"seconds", result.seconds},
          {"sent", result.sent},
          {"received", result.completed},
          {"timeouts", result.timeouts},
          {"duplicates", result.duplicates},
          {"corrupted", result.corrupted},
          {"planned", result.planned},
          {"in_flight", result.in_flight},
          {"wrong", result.wrong()},
          {"latency", to_json(result.latency)},
          {"service", to_json(result.service)},
          {"send_lag", to_json(result.send_lag)}};
}

Json stream_part(const StreamResult& result) {
  return {{"seconds", result.seconds}, {"sent", result.sent},       {"failed", result.failed},
          {"waits", result.waits},     {"planned", result.planned}, {"send_lag", to_json(result.send_lag)}};
}

Far far_of(const Json& hello) {
  Far far;
  far.address = IpAddress::parse(get_text(hello, "address")).value_or(IpAddress{});
  far.mac = parse_mac(get_text(hello, "mac")).value_or(MacAddress{});
  for (const Json& port : get_part(hello, "ports")) {
    if (port.is_number_unsigned())
      far.ports.push_back(static_cast<std::uint16_t>(port.get<std::uint64_t>() & 0xffff));
  }
  return far;
}

}  // namespace

// What a lane needs, in the order in which it comes into being. A raw lane has no host, tcp_crr no transport
// that lasts.
struct Worker::Lane {
  std::optional<Host> host;
  std::unique_ptr<Transport> transport;
  std::optional<RrClient> rr;
  std::optional<StreamSender> stream;
  std::optional<CrrClient> crr;

  std::uint64_t syscalls() const { return host ? host->syscalls() : transport->syscalls(); }
  std::string mode() const { return host ? host->mode() : transport->mode(); }
  std::vector<std::string> explain() const { return host ? host->explain() : transport->explain(); }
  void wait(Instant deadline) {
    if (!host) return transport->wait(deadline);
    if (!host->poll()) host->wait(deadline);
  }
};

Worker::Worker(const ClientOptions& options) : options_(options) {}
Worker::~Worker() = default;

Outcome<void> Worker::connect() {
  auto control = Control::connect(options_.control, options_.patience);
  if (!control)
    return fail_with(control.error(), fmt::format("cannot reach {}", options_.control.to_string()));
  control_.emplace(std::move(*control));
  if (auto opened = open_lane(); !opened) return opened;
  const MacAddress mac = lane_->transport ? lane_->transport->mac() : MacAddress{};
  auto answer = control_->ask(make_hello(options_.block, mac), kAnswerTime);
  if (!answer) {
    if (!control_->error_text().empty())
      return fail_with({answer.error().code, 0, ""}, control_->error_text());
    return fail_with(answer.error(), "no session at the far end");
  }
  hello_ = std::move(*answer);
  if (get_text(hello_, "protocol") != kProtocol || get_text(hello_, "version") != version()) {
    return fail_with(
        {ErrorCode::not_supported, 0, "the two ends are of different versions; install the same one on both"},
        fmt::format("{} serves version '{}', this is {}", options_.control.to_string(),
                    get_text(hello_, "version"), version()));
  }
  if (auto ready = open_load(far_of(hello_)); !ready) {
    return fail_with(ready.error(), "cannot connect to the far end's ports");
  }
  control_->ignore_interrupts();
  return {};
}

Result<void> Worker::open_load(const Far& far) {
  const BlockOptions& block = options_.block;
  if (block.workload == Workload::tcp_crr) {
    lane_->crr.emplace(*lane_->host, block, far);
    return {};
  }
  if (auto done = lane_->transport->connect_to(far, block.flows); !done) return done;
  if (is_rr(block.workload)) {
    lane_->rr.emplace(*lane_->transport, block);
  } else {
    lane_->stream.emplace(*lane_->transport, block);
  }
  return {};
}

Outcome<void> Worker::open_lane() {
  const BlockOptions& block = options_.block;
  const bool tap = block.lane.path == Path::tap;
  const IpAddress near =
      tap && !options_.addresses.empty() ? options_.addresses[0].address : control_->local().address;
  const auto context = [&] { return fmt::format("cannot open {}", block.lane.name); };
  lane_ = std::make_unique<Lane>();
  const std::size_t ports = std::size_t{block.pairs} * block.flows;
  if (block.lane.raw) {
    auto raw = RawTransport::open(block, near, ports);
    if (!raw) return fail_with(raw.error(), context());
    lane_->transport = std::move(*raw);
    return {};
  }
  HostOptions wanted = host_options(block);
  wanted.addresses = options_.addresses;
  wanted.gateways = options_.gateways;
  wanted.xdp = options_.xdp;
  auto host = Host::open(wanted);
  if (!host) return fail_with(host.error(), context());
  lane_->host.emplace(std::move(*host));
  if (options_.on_host) {
    if (auto done = options_.on_host(*lane_->host); !done) return done;
  }
  if (block.workload == Workload::tcp_crr) return {};
  if (is_tcp(block.workload)) {
    lane_->transport = TcpTransport::client(*lane_->host, block);
    return {};
  }
  auto sockets = UdpTransport::open_client(*lane_->host, block, near);
  if (!sockets) return fail_with(sockets.error(), context());
  lane_->transport = std::move(*sockets);
  return {};
}

// After an interrupt the far end may have been interrupted too: then its half is missing, and that is no
// failure.
Outcome<Json> Worker::ask(const char* what) {
  const Json request = {{"do", what}, {"sent", get_count(part_, "sent")}};
  auto answer = control_->ask(request, interrupted() ? kAnswerTimeAfterInterrupt : kAnswerTime);
  if (answer) return std::move(*answer);
  if (interrupted()) return Json(nullptr);
  return fail_with(answer.error(), fmt::format("the far end did not answer to '{}'", what));
}

Outcome<void> Worker::run(double seconds) {
  std::optional<Error> error;
  if (lane_->rr || lane_->crr) {
    const RrResult result = lane_->rr ? lane_->rr->run(seconds) : lane_->crr->run(seconds);
    part_ = rr_part(result);
    error = result.error;
  } else {
    const StreamResult result = lane_->stream->run(seconds);
    part_ = stream_part(result);
    error = result.error;
  }
  if (error) return fail_with(*error, "the measurement stopped");
  return {};
}

Outcome<void> Worker::warm_up() {
  if (options_.block.warmup > 0) {
    if (auto ran = run(options_.block.warmup); !ran) return ran;
    settle();
  }
  return {};
}

Outcome<void> Worker::arm() {
  auto answer = ask("start");
  if (!answer) return tl::unexpected(answer.error());
  return {};
}

Outcome<void> Worker::measure() {
  const std::uint64_t calls = lane_->syscalls();
  const CpuSample start = meter_.sample();
  auto ran = run(options_.block.seconds);
  const CpuSample end = meter_.sample();
  part_["own_s"] = end.own - start.own;
  part_["syscalls"] = lane_->syscalls() - calls;
  if (!ran) return ran;
  if (auto stopped = ask("stop"); !stopped) return tl::unexpected(stopped.error());
  return {};
}

// What a full ring kept back still leaves, and arrives, before the other end is asked.
void Worker::settle() {
  const Instant end = device::monotonic_now() + kSettleTime;
  while (device::monotonic_now() < end) lane_->wait(end);
}

// What only the receiver of a stream knows.
void Worker::add_received(const Json& report) {
  const StreamCounts counts = counts_from_json(get_part(report, "counts"));
  part_["received"] = counts.received;
  part_["duplicates"] = counts.duplicates;
  part_["corrupted"] = counts.corrupted;
  part_["reordered"] = counts.reordered;
  part_["strangers"] = counts.strangers;
  part_["wrong"] = counts.wrong(get_count(part_, "sent"));
  if (options_.block.workload == Workload::tcp_stream) {
    const double seconds = get_number(report, "seconds");
    if (seconds > 0) part_["seconds"] = seconds;
    return;
  }
  // One-way: the two stamps must be of one clock.
  part_["latency"] = get_bool(part_, "same_machine") ? get_part(report, "latency") : Json(nullptr);
}

Outcome<Json> Worker::finish() {
  settle();
  auto report = ask("report");
  if (!report) return tl::unexpected(report.error());
  const bool automatic = options_.block.lane.path == Path::automatic;
  part_["path"] = automatic ? netchannel::to_string(lane_->host->path()) : options_.block.lane.name;
  part_["mode"] = lane_->mode();
  part_["explain"] = lane_->explain();
  part_["far_mode"] = get_text(hello_, "mode");
  part_["far_path"] = get_text(hello_, "path");
  part_["far_wait"] = get_text(hello_, "wait");
  part_["same_machine"] = !boot_id().empty() && get_text(hello_, "boot_id") == boot_id();
  part_["far_cpu_s"] = get_part(*report, "cpu_s");
  part_["far_own_s"] = get_number(get_part(*report, "cpu_s"), "own");
  part_["far_syscalls"] = get_count(*report, "syscalls");
  if (lane_->stream) add_received(*report);
  return std::move(part_);
}

}  // namespace netchannel::bench
