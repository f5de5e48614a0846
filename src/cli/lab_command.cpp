// netchannel lab: two network namespaces of our own, joined by a veth pair.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/exit_status.hpp"
#include "lab/lab.hpp"
#include "lab/namespaces.hpp"

namespace netchannel::cli {
namespace {

struct Arguments {
  lab::LabOptions lab;
  std::string delay;
  std::string side;
  std::vector<std::string> command;
};

int up(const Arguments& given) {
  lab::LabOptions options = given.lab;
  if (!given.delay.empty()) options.delay = duration_from("--delay", given.delay);
  const auto plan = lab::up(options);
  if (!plan) return complain("lab up", plan.error().text);
  for (const lab::Side side : {lab::Side::a, lab::Side::b}) {
    fmt::print("{}: namespace {}, {} {} {}\n", lab::to_string(side), plan->namespace_name(side),
               lab::kInterface, plan->v4(side).to_string(), plan->v6(side).to_string());
  }
  const std::string name = options.name == "default" ? "" : fmt::format(" --name {}", options.name);
  fmt::print("try: netchannel lab exec{} a -- ping -c 1 {}\n", name,
             plan->v4(lab::Side::b).address.to_string());
  return kDone;
}

int down(const Arguments& given) {
  const auto report = lab::down(given.lab.name);
  if (!report) return complain("lab down", report.error().text);
  fmt::print("{}\n", report->existed ? fmt::format("lab {} is gone", given.lab.name)
                                     : fmt::format("there is no lab {}", given.lab.name));
  if (!report->still_running.empty()) {
    fmt::print("still running in what was it: processes {}\n", fmt::join(report->still_running, ", "));
  }
  return kDone;
}

void print_side(const lab::SideStatus& side) {
  fmt::print("  {}: ", side.namespace_name);
  if (!side.exists || !side.link) {
    fmt::print("{}\n", side.exists ? "no eth0" : "missing");
    return;
  }
  std::vector<std::string> addresses;
  addresses.reserve(side.addresses.size());
  for (const auto& address : side.addresses) addresses.push_back(address.prefix.to_string());
  fmt::print("eth0 {}, MTU {}, {}\n", side.link->up ? "up" : "down", side.link->mtu,
             fmt::join(addresses, " "));
  if (!side.processes.empty()) fmt::print("    processes {}\n", fmt::join(side.processes, ", "));
}

int status(const Arguments& given) {
  const auto found = lab::status(given.lab.name);
  if (!found) return complain("lab status", found.error().text);
  if (!found->exists) {
    fmt::print("there is no lab {}; make one with: netchannel lab up\n", found->name);
    return kFailed;
  }
  fmt::print("lab {}: {}\n", found->name,
             found->whole ? found->made_as : "not whole; make it anew with: netchannel lab up");
  print_side(found->a);
  print_side(found->b);
  return found->whole ? kDone : kFailed;
}

int execute(const Arguments& given) {
  const auto side = lab::parse_side(given.side);
  if (!side)
    return complain_usage("lab exec", fmt::format("'{}' is not a side; there are a and b", given.side));
  // The parser keeps the separator when it comes after a positional argument.
  std::vector<std::string> command = given.command;
  if (!command.empty() && command.front() == "--") command.erase(command.begin());
  if (command.empty()) return complain_usage("lab exec", "no command given");
  return complain("lab exec", lab::exec(given.lab.name, *side, command).text);
}

}  // namespace

void add_lab(CLI::App& app, Chosen& chosen) {
  auto given = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("lab", "Two network namespaces joined by a veth pair, to try things in.");
  command->require_subcommand(1);
  command->footer(
      "Example:\n"
      "  netchannel lab up --mtu 9000\n"
      "  netchannel lab exec b -- netchannel serve --path xdp &\n"
      "  netchannel lab exec a -- netchannel bench udp_rr --to 10.77.1.2\n"
      "  netchannel lab down");
  const auto add = [&](const char* name, const char* description, int (*run)(const Arguments&)) {
    CLI::App* inner = command->add_subcommand(name, description);
    inner->add_option("--name", given->lab.name, "of the lab: several can be there")
        ->option_text("NAME (default)");
    inner->callback([given, &chosen, run] { chosen = [given, run] { return run(*given); }; });
    return inner;
  };
  CLI::App* inner = add("up", "Makes it, if it is not there.", up);
  inner->add_option("--mtu", given->lab.mtu, "of both interfaces")->option_text("N (1500)");
  inner->add_option("--queues", given->lab.queues, "receive and transmit queues of each interface")
      ->option_text("N (1)");
  inner->add_option("--delay", given->delay, "one way, added to what the kernel sends")->option_text("T");
  inner->add_option("--loss", given->lab.loss_percent, "per cent of the frames that the kernel sends")
      ->option_text("P (0)");
  inner->footer("Example:\n  netchannel lab up --mtu 9000 --delay 1ms");
  add("down", "Removes it; nothing is left behind.", down)->footer("Example:\n  netchannel lab down");
  add("status", "What is there, and who stands in it.", status)->footer("Example:\n  netchannel lab status");
  inner = add("exec", "Runs a command on one of its sides.", execute);
  inner->add_option("side", given->side, "a or b")->required()->option_text("a|b");
  inner->add_option("command", given->command, "the command and its arguments, after --")
      ->required()
      ->option_text("CMD...");
  inner->positionals_at_end();
  inner->footer("Example:\n  netchannel lab exec a -- ping -c 1 10.77.1.2");
}

}  // namespace netchannel::cli
