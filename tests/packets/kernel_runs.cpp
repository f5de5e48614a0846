#include "tests/packets/kernel_runs.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/unique_fd.hpp"
#include "netchannel/error.hpp"
#include "testkit/namespace.hpp"
#include "testkit/packet_script_kernel.hpp"

namespace netchannel::packets {
namespace {

using testkit::script::Net;
using testkit::script::Outcome;
using testkit::script::RunOptions;

constexpr std::size_t kAtOnce = 16;
constexpr int kTries = 3;

constexpr int kNoTarget = 3;

// In the child process; the message goes through `to`.
int run_here(const KernelRun& run, const RunOptions& options, int to) {
  const Net net = run.v6 ? Net::v6(run.script->mtu) : Net::v4(run.script->mtu);
  auto target = testkit::script::open_kernel_target(net);
  Outcome outcome;
  if (!target) {
    outcome = {Outcome::Kind::skipped, describe(target.error())};
  } else {
    outcome = run_script(*run.script, net, **target, options);
  }
  if (::write(to, outcome.message.data(), outcome.message.size()) < 0) return kNoTarget;
  return static_cast<int>(outcome.kind);
}

std::string contents(int fd) {
  std::string out;
  char part[4096];
  ::lseek(fd, 0, SEEK_SET);
  while (true) {
    const ssize_t size = ::read(fd, part, sizeof part);
    if (size <= 0) return out;
    out.append(part, static_cast<std::size_t>(size));
  }
}

Outcome run_one(const KernelRun& run, const RunOptions& options) {
  const UniqueFd message(::memfd_create("outcome", MFD_CLOEXEC));
  if (!message) return {Outcome::Kind::skipped, "no memory for a message"};
  const auto result = testkit::in_network_namespace([&] { return run_here(run, options, message.get()); });
  if (!result.possible) return {Outcome::Kind::skipped, result.why_not};
  Outcome out{Outcome::Kind::failed, contents(message.get())};
  if (result.exit_status >= 0 && result.exit_status <= 2)
    out.kind = static_cast<Outcome::Kind>(result.exit_status);
  else
    out.message += "the script's process ended with status " + std::to_string(result.exit_status);
  return out;
}

}  // namespace

std::vector<Outcome> run_on_kernel(const std::vector<KernelRun>& runs, const RunOptions& options) {
  std::vector<Outcome> out(runs.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < runs.size(); i = next++) out[i] = run_one(runs[i], options);
  };
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < std::min(kAtOnce, runs.size()); ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (int again = 1; again < kTries && out[i].kind == Outcome::Kind::failed; ++again)
      out[i] = run_one(runs[i], options);
  }
  return out;
}

}  // namespace netchannel::packets
