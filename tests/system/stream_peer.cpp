// A program for system tests over the public interface, as a user of the library writes one:
//
//   stream_peer serve --path xdp --device eth0                    HTTP on port 80, echo on port 7
//   stream_peer get http://10.77.0.2:8000/big --connections 300
//   stream_peer put http://10.77.0.2:8000/sum --size 65537
//   stream_peer stream 10.77.0.2:7 --size 65537
//   stream_peer pattern --size 65537 > file                       what it serves and sends
#include "tests/system/stream_peer.hpp"

#include <sodium.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "tests/system/stream_pattern.hpp"

namespace netchannel::stream_peer {
namespace {

struct Arguments {
  std::string path = "kernel", device, wait = "adaptive", xdp_mode = "auto", congestion = "cubic";
  std::vector<std::string> addresses, urls;
  std::uint32_t mtu = 1500;
  std::vector<std::uint64_t> sizes;
  double time = 0, warm_up = 0, timeout = 60;
  ServeOptions serve;
  FetchOptions fetch;
};

[[noreturn]] void refuse(const std::string& why) {
  std::fprintf(stderr, "stream_peer: %s\n", why.c_str());
  std::exit(2);
}

template <class T>
T or_refuse(const std::optional<T>& value, const std::string& what) {
  if (!value) refuse("not understood: " + what);
  return *value;
}

Duration seconds(double s) { return Duration(static_cast<std::int64_t>(s * 1e9)); }

Host open_host(const Arguments& arguments) {
  HostOptions options;
  options.path = or_refuse(parse_path(arguments.path), arguments.path);
  options.device = arguments.device;
  options.wait = or_refuse(parse_wait_mode(arguments.wait), arguments.wait);
  options.mtu = arguments.mtu;
  for (const auto& address : arguments.addresses)
    options.addresses.push_back(or_refuse(Prefix::parse(address), address));
  if (arguments.xdp_mode == "native") options.xdp.mode = XdpOptions::Mode::native;
  if (arguments.xdp_mode == "generic") options.xdp.mode = XdpOptions::Mode::generic;
  auto host = Host::open(options);
  if (!host) refuse(describe(host.error()));
  return std::move(*host);
}

// "http://ADDRESS:PORT/target", or ADDRESS:PORT alone.
void set_peer(FetchOptions& options, std::string url) {
  if (url.rfind("http://", 0) == 0) url.erase(0, 7);
  const auto slash = std::min(url.find('/'), url.size());
  options.target = slash < url.size() ? url.substr(slash) : "/";
  options.peer = or_refuse(Endpoint::parse(url.substr(0, slash)), url);
}

int print_pattern(std::uint64_t size) {
  std::vector<std::byte> piece(1 << 20);
  for (std::uint64_t at = 0; at < size; at += piece.size()) {
    const MutableBytes here = MutableBytes(piece).first(std::min<std::uint64_t>(piece.size(), size - at));
    fill_pattern(here, at);
    if (std::fwrite(here.data(), 1, here.size(), stdout) != here.size()) return 1;
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}

TcpOptions tcp_options(const Arguments& arguments) {
  TcpOptions options;
  options.congestion = arguments.congestion == "reno" ? CongestionControl::reno : CongestionControl::cubic;
  return options;
}

int run(CLI::App& app, Arguments& arguments) {
  if (app.got_subcommand("pattern")) return print_pattern(arguments.sizes.at(0));
  Host host = open_host(arguments);
  if (app.got_subcommand("serve")) {
    arguments.serve.tcp = tcp_options(arguments);
    return serve(host, arguments.serve);
  }
  FetchOptions& fetch_options = arguments.fetch;
  fetch_options.task = app.got_subcommand("get")   ? Task::get
                       : app.got_subcommand("put") ? Task::put
                                                   : Task::stream;
  fetch_options.time = seconds(arguments.time);
  fetch_options.warm_up = seconds(arguments.warm_up);
  fetch_options.timeout = seconds(arguments.timeout);
  fetch_options.tcp = tcp_options(arguments);
  int status = 0;
  for (std::size_t i = 0; i < arguments.urls.size(); ++i) {
    const auto& sizes = arguments.sizes;
    if (!sizes.empty()) fetch_options.size = sizes[std::min(i, sizes.size() - 1)];
    set_peer(fetch_options, arguments.urls[i]);
    status |= fetch(host, fetch_options);
  }
  return status;
}

int main(int argc, char** argv) {
  if (sodium_init() < 0) refuse("libsodium does not start");
  Arguments arguments;
  CLI::App app("speaks TCP over netchannel with programs of others");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--path", arguments.path);
  app.add_option("--device", arguments.device);
  app.add_option("--wait", arguments.wait);
  app.add_option("--xdp-mode", arguments.xdp_mode);
  app.add_option("--address", arguments.addresses, "tap: ours, with the length of the prefix");
  app.add_option("--mtu", arguments.mtu, "tap");
  app.add_option("--congestion", arguments.congestion, "cubic or reno");
  auto* serve = app.add_subcommand("serve");
  serve->add_option("--http-port", arguments.serve.http_port);
  serve->add_option("--echo-port", arguments.serve.echo_port);
  for (const char* name : {"get", "put", "stream"}) {
    auto* task = app.add_subcommand(name);
    task->add_option("url", arguments.urls)->required();
    task->add_option("--connections", arguments.fetch.connections);
    task->add_option("--repeat", arguments.fetch.repeat);
    task->add_option("--time", arguments.time, "s: take what comes in so long");
    task->add_option("--warm-up", arguments.warm_up, "s: what comes before is not counted");
    task->add_option("--timeout", arguments.timeout, "s");
    task->add_option("--size", arguments.sizes, "of each URL, the last of all others")
        ->allow_extra_args(false);
  }
  app.add_subcommand("pattern")->add_option("--size", arguments.sizes)->required();
  CLI11_PARSE(app, argc, argv);
  return run(app, arguments);
}

}  // namespace
}  // namespace netchannel::stream_peer

int main(int argc, char** argv) { return netchannel::stream_peer::main(argc, argv); }
