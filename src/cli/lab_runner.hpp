// Measures single blocks in a lab of its own: for each a fresh `netchannel serve` on side b and a fresh
// `netchannel bench` on side a, so that no block inherits another's sockets, programs or caches. While an XDP
// program is attached at one end of a veth the other end loses offloads; since every block opens and closes
// its own hosts, the kernel's blocks run with nothing attached.
#pragma once

#include <string>

#include "bench/options.hpp"
#include "bench/outcome.hpp"
#include "cli/child.hpp"
#include "lab/plan.hpp"

namespace netchannel::cli {

class LabRunner {
 public:
  struct Options {
    std::uint32_t mtu = 1500;
    bool offloads = true;   // false: TSO, GSO and GRO switched off on both ends
    bool loopback = false;  // no lab: both ends here, for what joins programs of one machine
  };
  // Removes labs that comparisons left behind when they were killed.
  static bench::Outcome<LabRunner> open(const Options& options);
  LabRunner(LabRunner&& other) noexcept;
  LabRunner& operator=(LabRunner&&) = delete;
  ~LabRunner();  // removes the lab

  // The block's JSON. Returns soon after an interrupt, with its children gone.
  bench::Outcome<Json> run(const bench::BlockOptions& block);

 private:
  explicit LabRunner(std::string name) : name_(std::move(name)), plan_(name_) {}
  std::vector<std::string> serve_command(const bench::BlockOptions& block) const;
  std::vector<std::string> bench_command(const bench::BlockOptions& block) const;
  bench::Outcome<Json> watch(Child& far, Child& near, Duration within) const;

  std::string name_;  // of the lab; empty: none, or moved from
  lab::Plan plan_;
};

}  // namespace netchannel::cli
