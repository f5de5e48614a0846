#include "lab/lab.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "lab/command.hpp"
#include "lab/namespaces.hpp"

namespace netchannel::lab {

namespace {

constexpr std::chrono::seconds kReadyWait{10};

bool is_good_name(const std::string& name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  if (name.empty() || name.size() > 32) return false;
  for (const char c : name) {
    if (!good(c)) return false;
  }
  return true;
}

LabResult<void> check_name(const std::string& name) {
  if (is_good_name(name)) return {};
  return failure("a lab's name is 1 to 32 letters, digits, \"_\" and \"-\"");
}

LabResult<void> check(const LabOptions& options) {
  if (auto good = check_name(options.name); !good) return good;
  if (options.mtu < 1280 || options.mtu > 65535) return failure("a lab's MTU is 1280 to 65535 bytes");
  if (options.queues < 1 || options.queues > 64) return failure("a lab has 1 to 64 queues");
  if (options.delay < Duration::zero() || options.delay > std::chrono::minutes(1)) {
    return failure("a lab's delay is 0 to 60 seconds");
  }
  if (!(options.loss_percent >= 0 && options.loss_percent <= 100))
    return failure("a loss is 0 to 100 percent");
  return {};
}

LabResult<void> check_root() {
  if (::geteuid() == 0) return {};
  return failure("a lab needs root, or a user namespace of its own; try sudo");
}

bool wants_netem(const LabOptions& options) {
  return options.delay != Duration::zero() || options.loss_percent > 0;
}

std::string microseconds(Duration delay) {
  return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(delay).count()) + "us";
}

std::string percent(double value) {
  char text[32];
  (void)std::snprintf(text, sizeof text, "%.4g%%", value);
  return text;
}

// Stands on side a's eth0 as its alias once everything is done: the mark of a whole lab, and what up()
// compares.
constexpr std::string_view kAliasStart = "netchannel lab: ";
std::string alias_of(const LabOptions& options) {
  std::string text = std::string(kAliasStart) + "mtu " + std::to_string(options.mtu) + ", queues " +
                     std::to_string(options.queues);
  if (options.delay != Duration::zero()) text += ", delay " + microseconds(options.delay);
  if (options.loss_percent > 0) text += ", loss " + percent(options.loss_percent);
  return text;
}

// One up() or down() at a time, between processes too, and nothing to be left behind: a lock on the directory
// itself. (Not on /run/netns, which ip(8) locks.)
UniqueFd lock_all() {
  UniqueFd directory{::open("/run", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  while (directory && ::flock(directory.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return directory;
}

LabResult<void> run_all(const std::vector<Arguments>& commands) {
  for (const Arguments& command : commands) {
    if (auto done = run_or_fail(command); !done) return done;
  }
  return {};
}

// ---- looking
// ------------------------------------------------------------------------------------------------------

LabResult<SideStatus> look_at(const std::string& name, Side side) {
  SideStatus out;
  out.namespace_name = Plan(name).namespace_name(side);
  if (::access(("/run/netns/" + out.namespace_name).c_str(), F_OK) != 0) return out;
  out.exists = true;
  auto network_namespace = open_namespace(name, side);
  if (!network_namespace) return tl::unexpected(network_namespace.error());
  out.processes = processes_in(*network_namespace);
  const auto looked = call_in(*network_namespace, [&]() -> LabResult<void> {
    auto mirror = control::Mirror::open(kInterface);
    if (!mirror && mirror.error().code != ErrorCode::no_such_device) return failure(describe(mirror.error()));
    if (mirror) {
      out.link = mirror->snapshot().link;
      out.addresses = mirror->snapshot().addresses;
    }
    return {};
  });
  // A file that is left of a namespace (after a crash of ip) cannot be entered: half made.
  if (!looked && ::geteuid() != 0) return tl::unexpected(looked.error());
  return out;
}

LabResult<LabStatus> look(const std::string& name) {
  LabStatus out;
  out.name = name;
  auto a = look_at(name, Side::a);
  if (!a) return tl::unexpected(a.error());
  auto b = look_at(name, Side::b);
  if (!b) return tl::unexpected(b.error());
  out.a = std::move(*a);
  out.b = std::move(*b);
  out.exists = out.a.exists || out.b.exists;
  const bool marked = out.a.link && out.a.link->alias.starts_with(kAliasStart);
  out.whole = marked && out.b.link && out.a.link->running && out.b.link->running;
  if (out.whole) out.made_as = out.a.link->alias.substr(kAliasStart.size());
  return out;
}

// ---- removing
// -----------------------------------------------------------------------------------------------------

LabResult<void> remove(const LabStatus& found) {
  // The veth first: a namespace in which a process still stands would keep it.
  for (const SideStatus* side : {&found.a, &found.b}) {
    // One end takes the other with it, so the second finds none; what really stays shows when the namespace
    // goes.
    if (side->link) (void)run({"ip", "-n", side->namespace_name, "link", "delete", kInterface});
  }
  LabResult<void> result;
  for (const SideStatus* side : {&found.a, &found.b}) {
    if (!side->exists) continue;
    if (auto done = run_or_fail({"ip", "netns", "delete", side->namespace_name}); !done) result = done;
  }
  return result;
}

std::vector<pid_t> processes_of(const LabStatus& found) {
  std::vector<pid_t> all = found.a.processes;
  all.insert(all.end(), found.b.processes.begin(), found.b.processes.end());
  return all;
}

std::string listed(const std::vector<pid_t>& processes) {
  std::string text;
  for (const pid_t pid : processes) text += " " + std::to_string(pid);
  return text;
}

// ---- making
// -------------------------------------------------------------------------------------------------------

LabResult<void> write_setting(const std::string& path, const char* value) {
  const UniqueFd file{::open(("/proc/sys/net/" + path).c_str(), O_WRONLY | O_CLOEXEC)};
  if (!file || ::write(file.get(), value, 1) != 1)
    return failure("cannot set " + path + " in the lab", errno);
  return {};
}

bool has_ipv6() { return ::access("/proc/sys/net/ipv6", F_OK) == 0; }

// In the side's namespace, before it has interfaces other than lo, which inherit the defaults.
LabResult<void> settle_kernel() {
  if (auto done = write_setting("ipv4/ip_forward", "1"); !done) return done;
  if (!has_ipv6()) return {};
  for (const char* scope : {"all", "default"}) {
    const std::string conf = std::string("ipv6/conf/") + scope + "/";
    const std::pair<const char*, const char*> settings[] = {{"disable_ipv6", "0"},
                                                            {"accept_dad", "0"},
                                                            {"router_solicitations", "0"},
                                                            {"accept_ra", "0"},
                                                            {"forwarding", "1"}};
    for (const auto& [setting, value] : settings) {
      if (auto done = write_setting(conf + setting, value); !done) return done;
    }
  }
  return {};
}

LabResult<void> make_namespaces(const LabOptions& options, const Plan& plan) {
  for (const Side side : {Side::a, Side::b}) {
    if (auto done = run_or_fail({"ip", "netns", "add", plan.namespace_name(side)}); !done) return done;
    auto made = open_namespace(options.name, side);
    if (!made) return tl::unexpected(made.error());
    if (auto done = call_in(*made, settle_kernel); !done) return done;
  }
  return {};
}

LabResult<void> make_veth(const LabOptions& options, const Plan& plan) {
  const std::string a = plan.namespace_name(Side::a), b = plan.namespace_name(Side::b);
  const std::string mtu = std::to_string(options.mtu), queues = std::to_string(options.queues);
  return run_or_fail(
      {"ip",          "-n",   a,       "link", "add",  "name", kInterface, "mtu", mtu, "numtxqueues", queues,
       "numrxqueues", queues, "type",  "veth", "peer", "name", kInterface, "mtu", mtu, "numtxqueues", queues,
       "numrxqueues", queues, "netns", b});
}

LabResult<void> address_side(const Plan& plan, Side side) {
  const std::string name = plan.namespace_name(side);
  const Side far = other(side);
  std::vector<Arguments> commands{
      {"ip", "-n", name, "link", "set", "lo", "up"},
      {"ip", "-n", name, "address", "add", plan.v4(side).to_string(), "broadcast", "+", "dev", kInterface},
      {"ip", "-n", name, "link", "set", kInterface, "up"},
      {"ip", "-n", name, "route", "add", plan.taps_v4(far).to_string(), "via",
       plan.v4(far).address.to_string()}};
  if (has_ipv6()) {
    commands.push_back(
        {"ip", "-n", name, "address", "add", plan.v6(side).to_string(), "dev", kInterface, "nodad"});
    commands.push_back({"ip", "-n", name, "-6", "route", "add", plan.taps_v6(far).to_string(), "via",
                        plan.v6(far).address.to_string()});
  }
  return run_all(commands);
}

bool has_cubic() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_available_congestion_control");
  std::string name;
  while (file >> name && name != "cubic") {
  }
  return name == "cubic";
}

// A system whose default is BBR paces with timers, which cost its TCP up to half of its speed on a machine
// whose timers are a hypervisor's: the kernel is not at its best, and differs from ours, which has CUBIC. By
// route, because only the first network namespace may change the default, and because programs then need no
// option.
LabResult<void> settle_congestion_control(const Plan& plan, Side side) {
  if (!has_cubic()) return {};
  const std::string name = plan.namespace_name(side);
  const auto with_cubic = [&](const char* family, Arguments route) {
    Arguments command{"ip", "-n", name, family, "route", "replace"};
    command.insert(command.end(), route.begin(), route.end());
    command.insert(command.end(), {"congctl", "cubic"});
    return command;
  };
  const std::string v4 = plan.v4(side).address.to_string();
  std::vector<Arguments> commands{with_cubic("-4", {plan.link_v4().to_string(), "dev", kInterface, "proto",
                                                    "kernel", "scope", "link", "src", v4}),
                                  with_cubic("-4", {"local", "127.0.0.1", "dev", "lo", "table", "local",
                                                    "proto", "kernel", "scope", "host", "src", "127.0.0.1"})};
  if (has_ipv6())
    commands.push_back(with_cubic(
        "-6", {plan.link_v6().to_string(), "dev", kInterface, "proto", "kernel", "metric", "256"}));
  return run_all(commands);
}

LabResult<void> impair_side(const LabOptions& options, const Plan& plan, Side side) {
  Arguments command{"tc",   "-n",   plan.namespace_name(side), "qdisc", "add", "dev", kInterface,
                    "root", "netem"};
  if (options.delay != Duration::zero())
    command.insert(command.end(), {"delay", microseconds(options.delay)});
  if (options.loss_percent > 0) command.insert(command.end(), {"loss", percent(options.loss_percent)});
  auto finished = run(command);
  if (!finished) return tl::unexpected(finished.error());
  if (finished->status == 0) return {};
  // ENOENT, in the words of old and of new kernels: nothing of that name could be found or loaded.
  const bool missing = finished->errors.find("qdisc kind is unknown") != std::string::npos ||
                       finished->errors.find("No such file or directory") != std::string::npos;
  if (missing) {
    return failure(
        "delay and loss need netem, which this kernel lacks; load it (modprobe sch_netem) or leave them out");
  }
  return failure("delay and loss were refused: " + finished->errors.substr(0, finished->errors.find('\n')));
}

// In the interface's namespace. The kernel makes the local route of an IPv6 address a moment after the
// address, and until then forwards what comes for it.
LabResult<void> wait_until_ready(const std::string& interface_name, bool with_carrier,
                                 const std::vector<IpAddress>& addresses) {
  auto mirror = control::Mirror::open(interface_name);
  if (!mirror) return failure(interface_name + ": " + describe(mirror.error()));
  const auto ready = [&] {
    const control::Snapshot& now = mirror->snapshot();
    const auto is_local = [&](const IpAddress& address) {
      const control::Route* route = control::find_route(now, address);
      return route != nullptr && route->type == control::RouteType::local;
    };
    return (now.link.running || !with_carrier) && std::all_of(addresses.begin(), addresses.end(), is_local);
  };
  const auto deadline = std::chrono::steady_clock::now() + kReadyWait;
  while (!ready()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return failure(interface_name + " did not come up; `dmesg` may tell why");
    }
    pollfd readable{mirror->fd(), POLLIN, 0};
    ::poll(&readable, 1, 100);
    mirror->refresh();
  }
  return {};
}

std::vector<IpAddress> addresses_of(const Prefix& v4, const Prefix& v6) {
  std::vector<IpAddress> out{v4.address};
  if (has_ipv6()) out.push_back(v6.address);
  return out;
}

// A new veth drops what is sent until the kernel's link watch has seen its carrier, up to a second later.
LabResult<void> wait_for_side(const LabOptions& options, const Plan& plan, Side side) {
  auto network_namespace = open_namespace(options.name, side);
  if (!network_namespace) return tl::unexpected(network_namespace.error());
  return call_in(*network_namespace, [&] {
    return wait_until_ready(kInterface, true, addresses_of(plan.v4(side), plan.v6(side)));
  });
}

LabResult<void> make(const LabOptions& options, const Plan& plan) {
  if (auto done = make_namespaces(options, plan); !done) return done;
  if (auto done = make_veth(options, plan); !done) return done;
  for (const Side side : {Side::a, Side::b}) {
    if (auto done = address_side(plan, side); !done) return done;
    if (auto done = settle_congestion_control(plan, side); !done) return done;
    if (!wants_netem(options)) continue;
    if (auto done = impair_side(options, plan, side); !done) return done;
  }
  for (const Side side : {Side::a, Side::b}) {
    if (auto done = wait_for_side(options, plan, side); !done) return done;
  }
  return run_or_fail(
      {"ip", "-n", plan.namespace_name(Side::a), "link", "set", kInterface, "alias", alias_of(options)});
}

}  // namespace

LabResult<Plan> up(const LabOptions& options) {
  if (auto good = check(options); !good) return tl::unexpected(good.error());
  if (auto good = check_root(); !good) return tl::unexpected(good.error());
  const UniqueFd lock = lock_all();
  const auto found = look(options.name);
  if (!found) return tl::unexpected(found.error());
  Plan plan(options.name);
  if (found->whole && found->a.link->alias == alias_of(options)) return plan;
  if (const auto inside = processes_of(*found); !inside.empty()) {
    return failure("lab \"" + options.name + "\" is there " +
                   (found->whole ? "with other options" : "half made") + " and in use by processes" +
                   listed(inside) + "; end them, or choose another --name");
  }
  if (auto removed = remove(*found); !removed) return tl::unexpected(removed.error());
  const auto made = make(options, plan);
  if (made) return plan;
  if (const auto half = look(options.name)) (void)remove(*half);
  return tl::unexpected(made.error());
}

LabResult<DownReport> down(const std::string& name) {
  if (auto good = check_name(name); !good) return tl::unexpected(good.error());
  if (auto good = check_root(); !good) return tl::unexpected(good.error());
  const UniqueFd lock = lock_all();
  const auto found = look(name);
  if (!found) return tl::unexpected(found.error());
  if (auto removed = remove(*found); !removed) return tl::unexpected(removed.error());
  return DownReport{.existed = found->exists, .still_running = processes_of(*found)};
}

LabResult<LabStatus> status(const std::string& name) {
  if (auto good = check_name(name); !good) return tl::unexpected(good.error());
  return look(name);
}

LabResult<void> configure_tap(const std::string& interface_name, const TapPlan& plan) {
  std::vector<Arguments> commands{
      {"ip", "address", "replace", plan.kernel_v4.to_string(), "dev", interface_name},
      {"ip", "link", "set", interface_name, "up"}};
  if (has_ipv6()) {
    commands.push_back(
        {"ip", "address", "replace", plan.kernel_v6.to_string(), "dev", interface_name, "nodad"});
  }
  if (auto done = run_all(commands); !done) return done;
  return wait_until_ready(interface_name, false, addresses_of(plan.kernel_v4, plan.kernel_v6));
}

}  // namespace netchannel::lab
