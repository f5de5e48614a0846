// What the kernel says about interfaces, as far as the bulk lane needs it: asked once, and for one interface
// kept current by its notifications, which cost nothing until somebody looks. In the network namespace in
// which it was opened.
#pragma once

#include <cstdint>
#include <string>

#include "base/unique_fd.hpp"
#include "netchannel/address.hpp"
#include "netchannel/error.hpp"

struct nlmsghdr;

namespace netchannel::device {

struct LinkFacts {
  std::uint32_t index = 0;
  bool ethernet = false;
  bool up = false;
  MacAddress mac;
  std::uint32_t mtu = 0;
  std::uint32_t gso_max_size = 0;  // bytes of a super-frame that the interface takes without cutting it
  std::uint64_t tx_dropped = 0;
};

class LinkWatch {
 public:
  // Errors: no_such_device, system.
  static Result<LinkWatch> open(const std::string& interface);

  // Takes in what has been published since; never blocks. One system call if that is nothing.
  void look() noexcept;
  bool present() const { return present_; }  // false once it is deleted or has left the namespace: for good
  bool usable() const { return present_ && facts_.up; }
  const LinkFacts& facts() const { return facts_; }

  // Asks about any interface now. Errors: no_such_device, system.
  static Result<LinkFacts> ask(std::uint32_t index);

 private:
  void take(const nlmsghdr& message) noexcept;
  UniqueFd fd_;
  LinkFacts facts_;
  bool present_ = true;
};

}  // namespace netchannel::device
