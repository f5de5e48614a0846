// What every example does first: opens a host as its first two arguments say, and ends in one line if it
// cannot.
#pragma once

#include <netchannel/host.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace example {

// The value, or the end of the program with the reason.
template <class T>
T must(netchannel::Result<T> result, const char* what) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s: %s\n", what, describe(result.error()).c_str());
  std::exit(1);
}

// argv: PROGRAM PATH DEVICE ...; PATH is auto, kernel, xdp, bulk, local or tap.
inline netchannel::Host open_host(int argc, char** argv, int wanted, const char* usage) {
  const auto path = argc >= wanted ? netchannel::parse_path(argv[1]) : std::nullopt;
  if (!path) {
    std::fprintf(stderr, "usage: %s %s\n", argv[0], usage);
    std::exit(2);
  }
  auto host = must(netchannel::Host::open({.path = *path, .device = argv[2]}), "cannot open a host");
  for (const std::string& sentence : host.explain()) std::fprintf(stderr, "%s\n", sentence.c_str());
  return host;
}

inline volatile std::sig_atomic_t stopped = 0;

// SIGINT and SIGTERM end a wait (ErrorCode::interrupted) and are seen here.
inline void stop_on_signals() {
  struct sigaction action{};
  action.sa_handler = [](int) { stopped = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

inline netchannel::Endpoint endpoint(const char* text) {
  if (const auto parsed = netchannel::Endpoint::parse(text)) return *parsed;
  std::fprintf(stderr, "not an address with a port, like 192.0.2.1:7 or [2001:db8::1]:7: %s\n", text);
  std::exit(2);
}

}  // namespace example
