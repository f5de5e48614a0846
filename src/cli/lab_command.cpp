#include <fmt/format.h>

#include <cstdio>

#include "cli/commands.hpp"
#include "lab/lab.hpp"
#include "lab/namespaces.hpp"

namespace netchannel::cli {
namespace {

struct LabWish {
  lab::LabOptions options;
  std::string delay = "0", loss = "0";
  std::string side;
  std::vector<std::string> command;
};

std::optional<double> parse_percent(std::string text) {
  if (!text.empty() && text.back() == '%') text.pop_back();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= 0 && value <= 100)) return std::nullopt;
  return value;
}

int lab_up(LabWish& wish) {
  const auto delay = parse_seconds(wish.delay);
  const auto loss = parse_percent(wish.loss);
  if (!delay) return complain("--delay " + wish.delay + " is not a time; write for instance 20ms"), kUsage;
  if (!loss) return complain("--loss " + wish.loss + " is not a share; write for instance 1%"), kUsage;
  wish.options.delay = Duration(static_cast<std::int64_t>(*delay * 1e9));
  wish.options.loss_percent = *loss;
  const auto plan = lab::up(wish.options);
  if (!plan) return complain(plan.error().text);
  fmt::print("lab {} is up: {} has {}, {} has {}; try: netchannel lab exec {}a -- ping -c 1 {}\n",
             wish.options.name, plan->namespace_name(lab::Side::a), plan->v4(lab::Side::a).to_string(),
             plan->namespace_name(lab::Side::b), plan->v4(lab::Side::b).to_string(),
             wish.options.name == "default" ? "" : "--name " + wish.options.name + " ",
             plan->v4(lab::Side::b).address.to_string());
  return kDone;
}

int lab_down(const LabWish& wish) {
  const auto report = lab::down(wish.options.name);
  if (!report) return complain(report.error().text);
  fmt::print("{}\n", report->existed ? "lab " + wish.options.name + " is gone"
                                     : "there was no lab " + wish.options.name);
  if (!report->still_running.empty()) {
    fmt::print("{} process(es) that stood in it go on, without a network\n", report->still_running.size());
  }
  return kDone;
}

void print_side(const lab::SideStatus& side) {
  fmt::print("  {}", side.namespace_name);
  if (side.link)
    fmt::print("  {} mtu {} {}", side.link->mac.is_zero() ? "" : to_string(side.link->mac), side.link->mtu,
               side.link->running ? "up" : "down");
  fmt::print("\n");
  for (const auto& address : side.addresses) fmt::print("    {}\n", address.prefix.to_string());
  if (!side.processes.empty()) fmt::print("    {} process(es)\n", side.processes.size());
}

int lab_status(const LabWish& wish) {
  const auto status = lab::status(wish.options.name);
  if (!status) return complain(status.error().text);
  if (!status->exists) {
    fmt::print("there is no lab {}; make it: netchannel lab up\n", wish.options.name);
    return kDone;
  }
  fmt::print("lab {}: {}\n", status->name,
             status->whole ? status->made_as : "half made; netchannel lab up mends it");
  print_side(status->a);
  print_side(status->b);
  return kDone;
}

int lab_exec(const LabWish& wish) {
  const auto side = lab::parse_side(wish.side);
  if (!side) return complain("the side is a or b, not " + wish.side), kUsage;
  if (wish.command.empty()) return complain("no command; write: netchannel lab exec a -- CMD..."), kUsage;
  return complain(lab::exec(wish.options.name, *side, wish.command).text);
}

}  // namespace

void add_lab(CLI::App& app, Action& action) {
  auto wish = std::make_shared<LabWish>();
  CLI::App* command =
      app.add_subcommand("lab", "Two network namespaces joined by a veth pair, to try things in");
  command->require_subcommand(1);
  command->footer(
      "Example:\n  netchannel lab up --mtu 9000\n  netchannel lab exec b -- ip addr\n  netchannel lab down");
  const auto add = [&](const char* name, const char* what) {
    CLI::App* verb = command->add_subcommand(name, what);
    verb->add_option("--name", wish->options.name, "Name of the lab")->capture_default_str();
    return verb;
  };
  CLI::App* up = add("up", "Makes it");
  up->add_option("--mtu", wish->options.mtu, "Bytes of the largest packet")->capture_default_str();
  up->add_option("--queues", wish->options.queues, "Receive and transmit queues")->capture_default_str();
  up->add_option("--delay", wish->delay, "Delay in each direction, for instance 20ms (needs netem)");
  up->add_option("--loss", wish->loss, "Loss in each direction, for instance 1% (needs netem)");
  up->callback([&action, wish] { action = [wish] { return lab_up(*wish); }; });
  add("down", "Removes it; nothing is left behind")->callback([&action, wish] {
    action = [wish] { return lab_down(*wish); };
  });
  add("status", "Says what is there")->callback([&action, wish] {
    action = [wish] { return lab_status(*wish); };
  });
  CLI::App* exec = add("exec", "Runs a program in a side");
  exec->add_option("side", wish->side, "a or b")->required();
  exec->add_option("command", wish->command, "The program and its arguments, after --");
  exec->callback([&action, wish] { action = [wish] { return lab_exec(*wish); }; });
}

}  // namespace netchannel::cli
