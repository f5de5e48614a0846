// netchannel compare: paths against each other, interleaved, in a lab of its own.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "bench/coordinator.hpp"
#include "bench/signals.hpp"
#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/exit_status.hpp"
#include "cli/lab_runner.hpp"
#include "cli/output.hpp"
#include "lab/user_namespace.hpp"

namespace netchannel::cli {
namespace {

constexpr const char* kDefaultDirectory = "netchannel-report";

// What was given; what was not keeps the preset's value.
struct Arguments {
  std::vector<std::string> workloads;
  std::string preset = "quick";
  std::vector<std::string> paths;
  std::vector<std::uint32_t> sizes, pairs;
  std::optional<std::uint32_t> batch, burst, runs, flows, mtu;
  std::optional<double> rate, duration, warmup;
  std::string wait, baseline_wait, offloads = "default";
  int confidence = 95;
  std::optional<std::uint64_t> seed;
  double width = 5;
  bool strict = false;
  OutputOptions output;
};

template <class T>
void take(T& into, const std::optional<T>& given) {
  if (given) into = *given;
}

bench::CompareOptions options_from(const Arguments& given) {
  auto found = bench::preset(given.preset);
  if (!found)
    throw UsageError{
        fmt::format("no preset '{}'; there are demo (a minute) and quick (a few minutes)", given.preset)};
  bench::CompareOptions out = *found;
  if (!given.workloads.empty()) out.workloads.clear();
  for (const std::string& name : given.workloads) out.workloads.push_back(workload_from(name));
  if (!given.paths.empty()) out.lanes = lanes_from(given.paths);
  for (bench::Shape& shape : out.shapes) {
    if (!given.sizes.empty()) shape.sizes = given.sizes;
    take(shape.flows, given.flows);
  }
  if (!given.pairs.empty()) out.pairs = given.pairs;
  take(out.batch, given.batch);
  take(out.burst, given.burst);
  take(out.runs, given.runs);
  take(out.rate, given.rate);
  take(out.seconds, given.duration);
  take(out.warmup, given.warmup);
  take(out.mtu, given.mtu);
  take(out.seed, given.seed);
  if (!given.wait.empty()) out.wait = wait_from("--wait", given.wait);
  if (!given.baseline_wait.empty()) out.baseline_wait = wait_from("--baseline-wait", given.baseline_wait);
  if (given.offloads != "default" && given.offloads != "off")
    throw UsageError{"--offloads is default or off"};
  out.offloads = given.offloads == "default";
  out.confidence = given.confidence;
  if (out.mtu < 1280 || out.mtu > 65535) throw UsageError{"--mtu is from 1280 (IPv6's least) to 65535"};
  return out;
}

// Without root: everything in a user namespace, and only what works there. Says what is left out.
bench::Outcome<std::vector<std::string>> do_without_root(bench::CompareOptions& options,
                                                         bool paths_were_given) {
  std::vector<std::string> notes;
  if (::geteuid() == 0) return notes;
  // Inside, who we are outside still decides.
  const bool may_use_tap = ::access("/dev/net/tun", R_OK | W_OK) == 0;
  if (auto entered = lab::enter_user_namespace(); !entered) {
    return bench::fail_with({ErrorCode::not_permitted, 0, ""},
                            "needs root (run it with sudo), or a user namespace: " + entered.error().text);
  }
  std::vector<std::string> dropped;
  std::erase_if(options.lanes, [&](const bench::Lane& lane) {
    if (!lane.shares_interface()) return false;
    dropped.push_back(lane.name);
    return true;
  });
  if (!dropped.empty()) {
    notes.push_back(fmt::format(
        "not measured: {}: loading a BPF program needs CAP_BPF and CAP_NET_ADMIN on the machine itself; "
        "run it with sudo for these",
        fmt::join(dropped, ", ")));
  }
  if (!paths_were_given && may_use_tap) options.lanes.push_back(*bench::parse_lane("tap"));
  if (!paths_were_given && !may_use_tap) {
    notes.emplace_back("not measured: tap: /dev/net/tun is closed to you; as root: chmod 666 /dev/net/tun");
  }
  if (options.lanes.empty()) return bench::fail_with({ErrorCode::not_permitted, 0, ""}, notes.front());
  return notes;
}

// Programs of one machine are joined by its loopback, and by nothing else that is measured.
bool on_loopback(const bench::CompareOptions& options) {
  const auto local = [](const bench::Lane& lane) { return lane.local(); };
  const auto both = [](const bench::Lane& lane) { return lane.local() || lane.kernel(); };
  if (std::none_of(options.lanes.begin(), options.lanes.end(), local)) return false;
  if (!std::all_of(options.lanes.begin(), options.lanes.end(), both)) {
    throw UsageError{
        "local joins programs of one machine and is measured against the kernel's loopback: name it with "
        "kernel and kernel-batched only"};
  }
  return true;
}

bench::OnProgress progress_to(ProgressLine& line) {
  return [&line](const bench::Progress& progress) {
    line.show(fmt::format("{:3}/{} {} {} {}, {} left", progress.done + 1, progress.total,
                          bench::to_string(progress.next.workload), progress.next.lane.name,
                          to_string(progress.next.wait), duration_text(progress.seconds_left)));
  };
}

int status_of(const Json& document, const Arguments& given) {
  if (bench::has_wrong_stream(document)) {
    return complain(
        "compare",
        "a stream was not correct: messages came twice, altered or unasked; look for \"wrong stream\" "
        "among the flags in the JSON",
        kWrongStream);
  }
  if (get_text(document, "status") == "interrupted")
    return complain("compare", "interrupted; what was measured until then is shown");
  if (get_part(document, "blocks").empty()) {
    const Json& warnings = get_part(document, "warnings");
    return complain("compare", warnings.empty()
                                   ? "nothing could be measured"
                                   : "nothing could be measured: " + warnings[0].get<std::string>());
  }
  if (given.strict) {
    const auto doubts = bench::doubts(document, given.width);
    if (!doubts.empty())
      return complain("compare",
                      fmt::format("confidence not reached: {}{}", doubts.front(),
                                  doubts.size() > 1 ? fmt::format(" (and {} more)", doubts.size() - 1) : ""),
                      kNotConfident);
  }
  return kDone;
}

int compare(const Arguments& given) {
  bench::CompareOptions options = options_from(given);
  bench::catch_interrupts();
  const bool loopback = on_loopback(options);
  auto notes = loopback ? bench::Outcome<std::vector<std::string>>(std::vector<std::string>())
                        : do_without_root(options, !given.paths.empty());
  if (!notes) return complain("compare", bench::describe(notes.error()));
  const bench::Plan plan = bench::make_plan(options);
  if (const auto fault = bench::fault_of(options, plan)) return complain_usage("compare", *fault);
  for (const std::string& note : *notes) fmt::print(stderr, "netchannel compare: {}\n", note);
  fmt::print(stderr, "netchannel compare: {} blocks, about {}\n", plan.blocks.size(),
             duration_text(bench::estimated_seconds(options, plan)));
  Json document;
  {
    auto runner = LabRunner::open({.mtu = options.mtu, .offloads = options.offloads, .loopback = loopback});
    if (!runner) return complain("compare", bench::describe(runner.error()));
    ProgressLine line;
    document = bench::run_plan(
        options, plan, [&](const bench::BlockOptions& block) { return runner->run(block); },
        progress_to(line));
  }
  for (const std::string& note : *notes) document["warnings"].push_back(note);
  OutputOptions output = given.output;
  if (output.directory.empty() && output.json.empty()) output.directory = kDefaultDirectory;
  const bool written = put_out("compare", document, output);
  const int status = status_of(document, given);
  return status == kDone && !written ? kFailed : status;
}

void add_measuring_options(CLI::App& command, Arguments& given) {
  command
      .add_option(
          "--paths", given.paths,
          "kernel, kernel-batched, xdp, bulk, local, tap, raw, raw:xdp, raw:bulk; the same twice is a "
          "null comparison; local and the kernel's are measured on the loopback")
      ->delimiter(',')
      ->option_text("P,...");
  command.add_option("--size", given.sizes, "bytes of a message or a write")
      ->delimiter(',')
      ->option_text("BYTES,...");
  command
      .add_option("--pairs", given.pairs,
                  "parallel flows: a process each on the kernel paths, flows of one host else")
      ->delimiter(',')
      ->option_text("N,...");
  command.add_option("--flows", given.flows, "peers that each pair takes in turn, so that nothing coalesces")
      ->option_text("N");
  command.add_option("--batch", given.batch, "messages a call, where the path can")->option_text("N (32)");
  command.add_option("--burst", given.burst, "*_rr: requests in flight beyond one")->option_text("N (0)");
  command.add_option("--rate", given.rate, "messages a second by a plan, whatever comes back (open loop)")
      ->option_text("N/s");
  command.add_option("--duration", given.duration, "measured in each run")->option_text("S");
  command.add_option("--warmup", given.warmup, "before each run, thrown away")->option_text("S");
  command.add_option("--runs", given.runs, "of each path and wait, fixed ahead")->option_text("N (5)");
  command
      .add_option(
          "--wait", given.wait,
          "block, spin or adaptive; without it the kernel blocks and spins, ours is adaptive and spins")
      ->option_text("W");
  command.add_option("--baseline-wait", given.baseline_wait, "the kernel paths', if it differs")
      ->option_text("W");
  command.add_option("--mtu", given.mtu, "of the lab's interfaces")->option_text("N (1500)");
  command.add_option("--offloads", given.offloads, "the kernel's TSO, GSO and GRO")
      ->option_text("default|off");
}

}  // namespace

void add_compare(CLI::App& app, Chosen& chosen) {
  auto given = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "compare", "Measures paths against each other, interleaved, in a lab of its own; writes a report.");
  command
      ->add_option("workload", given->workloads,
                   "udp_rr, udp_stream, tcp_rr, tcp_stream, tcp_crr; the preset's if none is named")
      ->option_text("WORKLOAD...");
  command
      ->add_option("--preset", given->preset,
                   "demo (a minute) or quick (a few minutes); other options change it")
      ->option_text("NAME (quick)");
  add_measuring_options(*command, *given);
  command->add_option("--confidence", given->confidence, "of the intervals: 95 or 99")
      ->check(CLI::IsMember({95, 99}))
      ->option_text("95|99");
  command
      ->add_option("--width", given->width, "under --strict: per cent to each side that an interval may have")
      ->option_text("P (5)");
  command->add_option("--seed", given->seed, "of the order of the runs and of the bootstrap")
      ->option_text("N (1)");
  command->add_flag("--strict", given->strict, "exit 4 if an interval is too wide or others used the CPUs");
  command->add_option("--json", given->output.json, "write the measurement there; - is standard output")
      ->option_text("FILE");
  command->add_option("--out", given->output.directory, "write every format there (netchannel-report)")
      ->option_text("DIR");
  command->footer(
      "Exit status: 0 done, 1 failed or interrupted, 2 usage, 3 a stream was not\n"
      "correct, 4 confidence not reached under --strict.\n\n"
      "Examples:\n  netchannel compare --preset demo\n"
      "  netchannel compare udp_rr --paths kernel,xdp --wait spin --size 1,1024\n"
      "  netchannel compare tcp_rr --paths kernel,local");
  command->callback([given, &chosen] { chosen = [given] { return compare(*given); }; });
}

}  // namespace netchannel::cli
