// What this machine offers netchannel: each path, each privilege, each known trap, with a verdict and the
// command that mends it. Findings are plain values, so that text, JSON and tests say the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace netchannel::cli {

enum class Verdict { ok, slow, missing };

struct Finding {
  std::string area;  // "path", "privilege", "trap"
  std::string name;  // "xdp", "CAP_BPF", "governor"
  Verdict verdict = Verdict::ok;
  std::string detail;  // a sentence
  std::string mend;    // what to do, empty if there is nothing to mend
};

struct Diagnosis {
  std::string device;  // what was looked at; empty: there is no interface to look at
  std::vector<Finding> findings;
  // Some path other than the kernel's works on the device.
  bool accelerated() const;
};

// Looks at one interface (empty: the one of the default route, else the first that is up). Opens the xdp path
// for a moment, with no claim, so nothing of the interface's traffic is touched.
Diagnosis diagnose(const std::string& device);

// The whole of it for a person, at most 80 columns: the verdict first.
std::string to_text(const Diagnosis& diagnosis);
std::string to_json(const Diagnosis& diagnosis);

}  // namespace netchannel::cli
