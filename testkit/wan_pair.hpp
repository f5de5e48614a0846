// The two sides of veth_pair.hpp with a path between them in place of a wire:
//
//   side a: eth0 -- x0 [namespace between: Wan] x1 -- eth0 :side b
//
// Both kernels have their offloads off, so that frames are as large and whole as on a wire. With `tap`, side
// a has no eth0 for its addresses; the namespace between has a TAP "nctap0" in place of x0, which a program
// opens that is run with in_between(): it is the host at that end, with addresses of its own.
#pragma once

#include <memory>

#include "testkit/veth_pair.hpp"
#include "testkit/wan.hpp"

namespace netchannel::testkit {

class WanPair : public VethPair {
 protected:
  void TearDown() override;
  void build(const device::LinkOptions& path, bool tap = false);
  // Runs `what` with the thread in the namespace between.
  void in_between(const std::function<void()>& what);
  Wan& wan() { return *wan_; }

 private:
  UniqueFd between_;
  std::unique_ptr<Wan> wan_;
};

}  // namespace netchannel::testkit
