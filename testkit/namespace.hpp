// Runs a piece of a test in a child process with a user and a network namespace of its own, where it is root
// over a network that holds nothing but a loopback. Needs no privileges where the system allows user
// namespaces.
#pragma once

#include <functional>
#include <string>

namespace netchannel::testkit {

struct NamespaceRun {
  bool possible = true;
  std::string why_not;  // if it is not possible
  int exit_status = 0;  // what `body` returned, or 128 and the signal that ended it
};
// `body` runs in the child and its result is the child's exit status. What it prints is seen.
NamespaceRun in_network_namespace(const std::function<int()>& body);

}  // namespace netchannel::testkit
