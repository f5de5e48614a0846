// netchannel bench: one workload over one path against a `serve`.
#include <fmt/format.h>

#include <memory>

#include "bench/client.hpp"
#include "bench/coordinator.hpp"
#include "bench/signals.hpp"
#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"
#include "cli/tap_setup.hpp"

namespace netchannel::cli {
namespace {

struct Arguments {
  std::string workload;
  std::string to;
  std::string path = "auto";
  std::string device;
  std::string wait = "adaptive";
  std::string xdp_mode = "auto";
  std::string tap_seat = "default/a";
  std::optional<std::uint32_t> size;
  bench::BlockOptions block;
  std::uint32_t runs = 1;
  int confidence = 95;
  double width = 5;
  bool strict = false;
  OutputOptions output;
};

bench::ClientOptions options_from(const Arguments& given) {
  bench::ClientOptions out;
  out.block = given.block;
  out.block.workload = workload_from(given.workload);
  out.block.lane = lane_from(given.path);
  out.block.wait = wait_from("--wait", given.wait);
  out.block.size = given.size.value_or(bench::default_size(out.block.workload));
  out.control = endpoint_from("--to", given.to, bench::kControlPort);
  out.block.device = device_for(out.block.lane, given.device, &out.control.address);
  out.xdp.mode = xdp_mode_from(given.xdp_mode);
  if (auto fault = bench::fault_of(out.block)) throw UsageError{*fault};
  if (given.runs < 1 || given.runs > 1000) throw UsageError{"--runs is from 1 to 1000"};
  const auto seat = tap_seat_from(given.tap_seat);  // wrong is wrong, whichever path
  if (out.block.lane.path == Path::tap) {
    const TapSetup setup = tap_setup(seat.plan, out.block.device);
    out.addresses = setup.addresses;
    out.gateways = setup.gateways;
    out.on_host = setup.on_host;
  }
  return out;
}

Json config_of(const bench::ClientOptions& options, const Arguments& given) {
  Json config = bench::to_json(options.block);
  config["duration_s"] = config["seconds"];
  config.erase("seconds");
  config["runs"] = given.runs;
  config["to"] = options.control.to_string();
  config["device"] = options.block.device;
  config["confidence"] = given.confidence;
  return config;
}

int status_of(const Json& document, const Arguments& given) {
  if (bench::has_wrong_stream(document)) {
    return complain(
        "bench",
        "a stream was not correct: messages came twice, altered or unasked; see the flags of its block",
        kWrongStream);
  }
  if (get_text(document, "status") == "interrupted")
    return complain("bench", "interrupted; what was measured until then is shown");
  if (given.strict) {
    const auto doubts = bench::doubts(document, given.width);
    if (!doubts.empty()) return complain("bench", "confidence not reached: " + doubts.front(), kNotConfident);
  }
  return kDone;
}

Json without(const Json& flags, std::string_view flag) {
  Json out = Json::array();
  for (const Json& one : flags) {
    if (one != flag) out.push_back(one);
  }
  return out;
}

int run_bench(const Arguments& given) {
  const bench::ClientOptions options = options_from(given);
  bench::catch_interrupts();
  std::vector<Json> blocks;
  {
    ProgressLine progress;
    const double each = options.block.seconds + options.block.warmup + 0.2;
    for (std::uint32_t run = 0; run < given.runs && !bench::interrupted(); ++run) {
      progress.show(fmt::format("run {} of {}, {} left", run + 1, given.runs,
                                duration_text(each * (given.runs - run))));
      auto block = bench::run_block(options);
      if (!block && bench::interrupted()) break;
      if (!block) {
        progress.clear();
        return complain("bench", bench::describe(block.error()));
      }
      (*block)["order"] = run;
      (*block)["round"] = run;
      (*block)["contestant"] = 0;
      blocks.push_back(std::move(*block));
    }
  }
  // An only run that was interrupted is shown all the same; the document's status says what it is.
  if (blocks.size() == 1) blocks[0]["flags"] = without(blocks[0]["flags"], "interrupted");
  const Json document = bench::document(config_of(options, given), std::move(blocks), given.confidence);
  const bool written = put_out("bench", document, given.output);
  const int status = status_of(document, given);
  return status == kDone && !written ? kFailed : status;
}

}  // namespace

void add_bench(CLI::App& app, Chosen& chosen) {
  auto given = std::make_shared<Arguments>();
  bench::BlockOptions& block = given->block;
  CLI::App* command = app.add_subcommand(
      "bench", "One workload over one path, against a `netchannel serve` on the other end.");
  command
      ->add_option("workload", given->workload,
                   "udp_rr, tcp_rr (request and reply), udp_stream, tcp_stream, or tcp_crr (a connection for "
                   "each request)")
      ->required()
      ->option_text("WORKLOAD");
  command->add_option("--to", given->to, "where serve runs")->required()->option_text("ADDR[:PORT]");
  command->add_option("--path", given->path, "auto, kernel, kernel-batched, xdp, bulk, local, tap or raw")
      ->option_text("P (auto)");
  command->add_option("--device", given->device, "the interface (xdp) or the TAP's name")->option_text("IF");
  command->add_option("--wait", given->wait, "block, spin or adaptive; the far end waits by its own")
      ->option_text("W (adaptive)");
  command
      ->add_option("--size", given->size,
                   "bytes of a message or a write (1; udp_stream 100, tcp_stream 65536)")
      ->option_text("BYTES");
  command
      ->add_option("--pairs", block.pairs,
                   "parallel flows: a process each on the kernel paths, flows of one host else")
      ->option_text("N (1)");
  command->add_option("--flows", block.flows, "peers that each pair takes in turn")->option_text("N (1)");
  command->add_option("--batch", block.batch, "messages a call, where the path can")->option_text("N (32)");
  command->add_option("--burst", block.burst, "*_rr: requests in flight beyond one")->option_text("N (0)");
  command->add_option("--rate", block.rate, "messages a second by a plan, whatever comes back (open loop)")
      ->option_text("N/s");
  command->add_option("--duration", block.seconds, "measured in each run")->option_text("S (2)");
  command->add_option("--warmup", block.warmup, "before that, thrown away")->option_text("S (0.2)");
  command->add_option("--runs", given->runs, "how often")->option_text("N (1)");
  command->add_option("--confidence", given->confidence, "of the intervals: 95 or 99")
      ->check(CLI::IsMember({95, 99}))
      ->option_text("95|99");
  command
      ->add_option("--width", given->width, "under --strict: per cent to each side that an interval may have")
      ->option_text("P (5)");
  command->add_flag("--strict", given->strict, "exit 4 if an interval is too wide or others used the CPUs");
  command->add_option("--xdp-mode", given->xdp_mode, "auto, native or generic")->option_text("M (auto)");
  command->add_option("--mtu", block.mtu, "of the TAP, and of raw's frames")->option_text("N (1500)");
  command->add_option("--tap-seat", given->tap_seat, "whose TAP addresses to use: a lab's name and side")
      ->option_text("LAB/a|b");
  command->add_option("--json", given->output.json, "write the measurement there; - is standard output")
      ->option_text("FILE");
  command->add_option("--out", given->output.directory, "write every format there")->option_text("DIR");
  command->footer(
      "Example, with `netchannel serve --path xdp --wait spin` on the other machine:\n"
      "  netchannel bench udp_rr --to 192.0.2.1 --path xdp --wait spin --runs 5");
  command->callback([given, &chosen] { chosen = [given] { return run_bench(*given); }; });
}

}  // namespace netchannel::cli
