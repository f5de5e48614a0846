// One block from connecting to its JSON: with one worker in this process, or with a process for each pair,
// all of which take each phase together. Parent and worker talk as the two ends of a measurement do, a JSON
// line each way.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "bench/block.hpp"
#include "bench/client.hpp"
#include "bench/signals.hpp"

namespace netchannel::bench {
namespace {

constexpr std::array kPhases = {"connect", "warm_up", "arm", "measure", "finish"};

Outcome<Json> do_phase(Worker& worker, std::string_view phase) {
  if (phase == "finish") return worker.finish();
  Outcome<void> done;
  if (phase == "connect") done = worker.connect();
  if (phase == "warm_up") done = worker.warm_up();
  if (phase == "arm") done = worker.arm();
  if (phase == "measure") done = worker.measure();
  if (!done) return tl::unexpected(done.error());
  return Json(nullptr);
}

Outcome<Json> run_alone(const ClientOptions& options) {
  Worker worker(options);
  const CpuMeter meter;
  CpuSample start, end;
  Json part;
  for (const std::string_view phase : kPhases) {
    const bool measure = phase == "measure";
    if (measure) start = meter.sample();
    auto done = do_phase(worker, phase);
    if (measure) end = meter.sample();
    if (!done) return done;
    part = std::move(*done);
  }
  return make_block(options.block, part, cpu_between(start, end, online_cpus()));
}

[[noreturn]] void be_worker(UniqueFd fd, const ClientOptions& options, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  start_ticker();
  Control control(std::move(fd));
  control.ignore_interrupts();
  Worker worker(options);
  for (;;) {
    const auto request = control.receive(std::chrono::hours(2));
    if (!request) ::_exit(0);
    const auto done = do_phase(worker, get_text(*request, "do"));
    const Json answer = done ? Json{{"part", *done}} : Json{{"failure", describe(done.error())}};
    if (!control.send(answer)) ::_exit(1);
  }
}

// The processes of a block. They end with it, whatever happens.
class Group {
 public:
  ~Group() {
    for (const pid_t child : children_) ::kill(child, SIGKILL);
    for (const pid_t child : children_) ::waitpid(child, nullptr, 0);
  }
  Outcome<void> start(const ClientOptions& options) {
    ClientOptions one = options;
    one.block.pairs = 1;
    one.block.rate = options.block.rate / options.block.pairs;
    for (std::uint32_t i = 0; i < options.block.pairs; ++i) {
      std::array<int, 2> fds;
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0) {
        return fail_with(
            {ErrorCode::system, errno, "cannot make a socket pair; raise the limit of open files"}, "");
      }
      UniqueFd ours(fds[0]), theirs(fds[1]);
      const pid_t parent = ::getpid();
      const pid_t child = ::fork();
      if (child < 0)
        return fail_with({ErrorCode::system, errno, "cannot start a process for each pair; lower --pairs"},
                         "");
      if (child == 0) {
        ours.reset();
        links_.clear();
        be_worker(std::move(theirs), one, parent);
      }
      children_.push_back(child);
      links_.emplace_back(std::move(ours));
      links_.back().ignore_interrupts();
    }
    return {};
  }
  // The merged parts, null but for the last phase.
  Outcome<Json> phase(const char* name, Duration within) {
    for (Control& link : links_) {
      if (auto sent = link.send({{"do", name}}); !sent)
        return fail_with(sent.error(), "a pair's process died");
    }
    Json merged;
    for (Control& link : links_) {
      auto answer = link.receive(within);
      if (!answer) return fail_with(answer.error(), "a pair's process died or hangs");
      if (answer->contains("failure"))
        return fail_with({ErrorCode::system, 0, ""}, get_text(*answer, "failure"));
      if (!get_part(*answer, "part").is_null()) merge_part(merged, (*answer)["part"]);
    }
    return merged;
  }

 private:
  std::vector<pid_t> children_;
  std::vector<Control> links_;
};

Outcome<Json> run_group(const ClientOptions& options) {
  Group group;
  if (auto started = group.start(options); !started) return tl::unexpected(started.error());
  const Duration within =
      std::chrono::seconds(30) +
      Duration(static_cast<std::int64_t>((options.block.seconds + options.block.warmup) * 1e9));
  const CpuMeter meter;
  CpuSample start, end;
  Json part;
  for (const char* phase : kPhases) {
    const bool measure = std::string_view(phase) == "measure";
    if (measure) start = meter.sample();
    auto done = group.phase(phase, within);
    if (measure) end = meter.sample();
    if (!done) return done;
    part = std::move(*done);
  }
  return make_block(options.block, part, cpu_between(start, end, online_cpus()));
}

}  // namespace

Outcome<Json> run_block(const ClientOptions& options) {
  const bool many = options.block.lane.kernel() && options.block.pairs > 1;
  if (many) return run_group(options);
  start_ticker();
  auto outcome = run_alone(options);
  stop_ticker();
  return outcome;
}

}  // namespace netchannel::bench
