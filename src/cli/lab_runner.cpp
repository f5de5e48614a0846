#include "cli/lab_runner.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <set>

#include "bench/control.hpp"
#include "bench/signals.hpp"
#include "control/ethtool.hpp"
#include "device/clock.hpp"
#include "lab/lab.hpp"
#include "lab/namespaces.hpp"

namespace netchannel::cli {
namespace {

constexpr std::string_view kNamePrefix = "cmp";

tl::unexpected<bench::Failure> failed(const std::string& text) {
  return bench::fail_with({ErrorCode::system, 0, ""}, text);
}

// A comparison names its lab after its process, so that another can tell whether its owner still lives. Of
// one that was killed while it made or removed its lab, either side can be left.
void remove_orphans() {
  const std::string prefix = "nc" + std::string(kNamePrefix);
  std::set<std::string> orphans;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/run/netns", ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(prefix) || !(name.ends_with("-a") || name.ends_with("-b"))) continue;
    const std::string digits = name.substr(prefix.size(), name.size() - prefix.size() - 2);
    pid_t owner = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), owner);
    if (status != std::errc{} || end != digits.data() + digits.size()) continue;
    if (::kill(owner, 0) != 0 && errno == ESRCH) orphans.insert(std::string(kNamePrefix) + digits);
  }
  for (const std::string& orphan : orphans) (void)lab::down(orphan);
}

bench::Outcome<void> switch_offloads_off(const std::string& lab) {
  using control::Feature;
  for (const lab::Side side : {lab::Side::a, lab::Side::b}) {
    const auto status = lab::run_in(lab, side, [] {
      for (const Feature feature : {Feature::tso, Feature::gso, Feature::gro}) {
        if (!control::set_feature(lab::kInterface, feature, false)) return 1;
      }
      return 0;
    });
    if (!status || *status != 0) return failed("cannot switch the offloads of the lab's interfaces off");
  }
  return {};
}

// Not the usual one, where somebody's own `serve` may be.
std::string loopback_port() { return std::to_string(10000 + ::getpid() % 20000); }

std::string own_program() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
}

}  // namespace

bench::Outcome<LabRunner> LabRunner::open(const Options& options) {
  if (options.loopback) return LabRunner("");
  remove_orphans();
  LabRunner runner(fmt::format("{}{}", kNamePrefix, ::getpid()));
  lab::LabOptions wanted;
  wanted.name = runner.name_;
  wanted.mtu = options.mtu;
  if (auto made = lab::up(wanted); !made) return failed("cannot make the lab: " + made.error().text);
  if (!options.offloads) {
    if (auto off = switch_offloads_off(runner.name_); !off) return tl::unexpected(off.error());
  }
  return runner;
}

LabRunner::LabRunner(LabRunner&& other) noexcept
    : name_(std::exchange(other.name_, "")), plan_(std::move(other.plan_)) {}

LabRunner::~LabRunner() {
  if (!name_.empty()) (void)lab::down(name_);
}

std::vector<std::string> LabRunner::serve_command(const bench::BlockOptions& block) const {
  std::vector<std::string> out = {own_program(), "serve",
                                  "--services",  "none",
                                  "--path",      block.lane.name,
                                  "--wait",      std::string(to_string(block.wait)),
                                  "--mtu",       std::to_string(block.mtu)};
  if (name_.empty()) out.insert(out.end(), {"--bind", "127.0.0.1", "--control-port", loopback_port()});
  if (block.lane.shares_interface()) out.insert(out.end(), {"--device", lab::kInterface});
  if (block.lane.path == Path::tap) out.insert(out.end(), {"--tap-seat", name_ + "/b"});
  return out;
}

std::vector<std::string> LabRunner::bench_command(const bench::BlockOptions& block) const {
  const auto text = [](double value) { return fmt::format("{}", value); };
  std::vector<std::string> out = {
      own_program(),
      "bench",
      std::string(bench::to_string(block.workload)),
      "--to",
      name_.empty() ? "127.0.0.1:" + loopback_port() : plan_.v4(lab::Side::b).address.to_string(),
      "--path",
      block.lane.name,
      "--wait",
      std::string(to_string(block.wait)),
      "--size",
      std::to_string(block.size),
      "--pairs",
      std::to_string(block.pairs),
      "--flows",
      std::to_string(block.flows),
      "--batch",
      std::to_string(block.batch),
      "--burst",
      std::to_string(block.burst),
      "--rate",
      text(block.rate),
      "--duration",
      text(block.seconds),
      "--warmup",
      text(block.warmup),
      "--mtu",
      std::to_string(block.mtu),
      "--json",
      "-"};
  if (block.lane.shares_interface()) out.insert(out.end(), {"--device", lab::kInterface});
  if (block.lane.path == Path::tap) out.insert(out.end(), {"--tap-seat", name_ + "/a"});
  return out;
}

bench::Outcome<Json> LabRunner::run(const bench::BlockOptions& block) {
  auto far = Child::start(name_, lab::Side::b, serve_command(block));
  if (!far) return tl::unexpected(far.error());
  auto near = Child::start(name_, lab::Side::a, bench_command(block));
  if (!near) return tl::unexpected(near.error());
  const auto measured = Duration(static_cast<std::int64_t>((block.seconds + block.warmup) * 1e9));
  auto document = watch(*far, *near, measured + std::chrono::seconds(30));
  if (!document) return document;
  const Json& blocks = get_part(*document, "blocks");
  if (!blocks.is_array() || blocks.empty()) return failed("bench measured nothing");
  return blocks[0];
}

// Reads both until the near end has said all. The far end dies first only if something is wrong.
bench::Outcome<Json> LabRunner::watch(Child& far, Child& near, Duration within) const {
  const Instant deadline = device::monotonic_now() + within;
  bool far_lives = true, output_open = true;
  while (output_open) {
    std::array fds = {pollfd{near.output_fd(), POLLIN, 0}, pollfd{near.errors_fd(), POLLIN, 0},
                      pollfd{far_lives ? far.output_fd() : -1, POLLIN, 0},
                      pollfd{far_lives ? far.errors_fd() : -1, POLLIN, 0}};
    (void)::poll(fds.data(), fds.size(), 100);
    if (bench::interrupted()) return failed("interrupted");
    if (device::monotonic_now() >= deadline)
      return failed("a block did not end in time; its processes were killed");
    output_open = near.read_output();
    (void)near.read_errors();
    (void)far.read_output();
    if (far_lives && !far.read_errors()) {
      far_lives = false;
      const std::string why = far.complaint();
      if (output_open) return failed(why.empty() ? "the far end died" : "at the far end: " + why);
    }
  }
  const int status = near.wait();
  (void)near.read_errors();
  auto document = parse_json(near.output());
  if (document && document->is_object()) return std::move(*document);
  const std::string why = near.complaint();
  return failed(why.empty() ? fmt::format("bench ended with status {} and measured nothing", status) : why);
}

}  // namespace netchannel::cli
