// netchannel serve: the far end of bench, and echo, discard and mirror for any client.
#include <fmt/format.h>

#include <memory>

#include "bench/server.hpp"
#include "bench/signals.hpp"
#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/exit_status.hpp"
#include "cli/tap_setup.hpp"

namespace netchannel::cli {
namespace {

struct Arguments {
  std::string path = "auto";
  std::string device;
  std::vector<std::string> bind;
  std::string wait = "adaptive";
  std::string services = "all";
  std::string xdp_mode = "auto";
  std::string tap_seat = "default/b";
  std::uint16_t port = 7;
  std::uint16_t discard_port = 9;
  std::uint16_t mirror_port = 4171;
  std::uint16_t control_port = bench::kControlPort;
  std::uint32_t mtu = 1500;
};

bench::ServeOptions options_from(const Arguments& given) {
  bench::ServeOptions out;
  out.lane = lane_from(given.path);
  out.wait = wait_from("--wait", given.wait);
  for (const std::string& text : given.bind) out.bind.push_back(address_from("--bind", text));
  out.device = device_for(out.lane, given.device, nullptr);
  if (given.services != "all" && given.services != "none") throw UsageError{"--services is all or none"};
  out.services = given.services == "all";
  out.echo_port = given.port;
  out.discard_port = given.discard_port;
  out.mirror_port = given.mirror_port;
  out.control_port = given.control_port;
  out.mtu = given.mtu;
  out.xdp.mode = xdp_mode_from(given.xdp_mode);
  const auto seat = tap_seat_from(given.tap_seat);  // wrong is wrong, whichever path
  if (out.lane.path == Path::tap) {
    const TapSetup setup = tap_setup(seat.plan, out.device);
    out.addresses = setup.addresses;
    out.gateways = setup.gateways;
    out.on_host = setup.on_host;
  }
  return out;
}

int serve(const Arguments& given) {
  bench::catch_interrupts();
  auto server = bench::Server::open(options_from(given));
  if (!server) return complain("serve", bench::describe(server.error()));
  const auto& lines = (*server)->description();
  fmt::print("netchannel serve: {}\n", lines.front());
  for (std::size_t i = 1; i < lines.size(); ++i) fmt::print("  {}\n", lines[i]);
  std::fflush(stdout);
  if (auto ran = (*server)->run(); !ran) return complain("serve", bench::describe(ran.error()));
  return kDone;
}

}  // namespace

void add_serve(CLI::App& app, Chosen& chosen) {
  auto given = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "serve", "The far end of bench; echo, discard and mirror services over UDP and TCP for any client.");
  command->add_option("--path", given->path, "auto, kernel, kernel-batched, xdp, bulk, local, tap or raw")
      ->option_text("P (auto)");
  command->add_option("--device", given->device, "the interface (xdp) or the TAP's name")->option_text("IF");
  command->add_option("--bind", given->bind, "serve this address only; may be given several times")
      ->option_text("ADDR");
  command->add_option("--wait", given->wait, "how an idle host waits: block, spin or adaptive")
      ->option_text("W (adaptive)");
  command->add_option("--port", given->port, "of the echo service")->option_text("N (7)");
  command->add_option("--discard-port", given->discard_port, "of the discard service")->option_text("N (9)");
  command
      ->add_option("--mirror-port", given->mirror_port,
                   "of the mirror service, an echo that needs no privilege")
      ->option_text("N (4171)");
  command->add_option("--control-port", given->control_port, "TCP port that bench talks to")
      ->option_text("N (4170)");
  command->add_option("--services", given->services, "none: bench's far end only")->option_text("all|none");
  command->add_option("--xdp-mode", given->xdp_mode, "auto, native or generic")->option_text("M (auto)");
  command->add_option("--mtu", given->mtu, "of the TAP")->option_text("N (1500)");
  command->add_option("--tap-seat", given->tap_seat, "whose TAP addresses to use: a lab's name and side")
      ->option_text("LAB/a|b");
  command->footer(
      "Runs until it is interrupted (Ctrl-C).\n\nExample, with a client on another machine:\n"
      "  netchannel serve --path xdp --device eth0\n"
      "  echo hello | socat -t1 - UDP:192.0.2.1:7\n"
      "  echo hello | socat -t1 - TCP:192.0.2.1:7");
  command->callback([given, &chosen] { chosen = [given] { return serve(*given); }; });
}

}  // namespace netchannel::cli
