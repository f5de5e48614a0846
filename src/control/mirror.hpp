// The kernel as control plane: a copy of what it knows about one interface (link, addresses, routes,
// neighbours), taken once by dumps and then followed by its notifications.
//
//   kernel --(multicast notifications)--> fd() readable --> refresh() --> snapshot() is current again
//
// Invariant: after refresh() the snapshot is the kernel's state of some moment after the call began to read,
// whatever was lost on the way: an overrun of the socket is answered with new dumps. Routes are never patched
// from messages, for IPv4 says nothing when routes vanish with their interface or address; a notification
// only says that they have changed, and the dump says how they are.
//
// One thread's. The network namespace is the one that the thread was in at open(). refresh() waits for
// nobody's message; a dump may wait for the kernel's own configuration lock, so keep it off the packet path:
// call it when fd() is readable. Needs no privilege, but for resolve(), which needs CAP_NET_ADMIN.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/netlink.hpp"
#include "control/types.hpp"

namespace netchannel::control {

enum Change : std::uint32_t {
  kLinkChanged = 1 << 0,
  kAddressesChanged = 1 << 1,
  kRoutesChanged = 1 << 2,
  kNeighboursChanged = 1 << 3,
  kGone = 1 << 4,  // the interface is no longer here; nothing follows
  kResync =
      1 << 5,  // notifications were lost and everything was dumped again (comes with what really changed)
  kStale = 1 << 6,  // a dump failed (memory); refresh() tries again at its next call, so call it soon
};

struct Changes {
  std::uint32_t mask = 0;             // Change bits
  std::vector<Neighbour> neighbours;  // as they are now; state `none`: forgotten by the kernel
  explicit operator bool() const { return mask != 0; }
  bool has(Change change) const { return (mask & change) != 0; }
};

struct MirrorOptions {
  std::uint32_t receive_buffer = 256 * 1024;  // bytes of notifications kept while nobody reads
};

class Mirror {
 public:
  // Errors: no_such_device, system.
  static Result<Mirror> open(const std::string& interface_name, const MirrorOptions& options = {});

  int fd() const { return events_.fd(); }  // readable when refresh() has something to read
  // Reads what has been notified, without blocking. The answer is valid until the next call.
  const Changes& refresh();
  const Snapshot& snapshot() const { return snapshot_; }

  // Asks the kernel to find or confirm a neighbour on this interface, as if it had a packet for it. Returns
  // at once; what comes of it arrives through refresh() as a neighbour that is reachable or failed. Nothing
  // is notified if the kernel finds the entry good as it is. Errors: not_permitted, device_down,
  // no_such_device, invalid_argument, system.
  Result<void> resolve(const IpAddress& address);

 private:
  Mirror(Netlink events, Netlink requests) : events_(std::move(events)), requests_(std::move(requests)) {}
  void on_event(const nlmsghdr& message);
  void on_link(const nlmsghdr& message);
  void on_address(const nlmsghdr& message);
  void on_neighbour(const nlmsghdr& message);
  int dump_all();  // 0 or errno
  int dump_link();
  int dump_addresses();
  int dump_routes();
  int dump_neighbours();
  void note_neighbours(const std::vector<Neighbour>& before);
  void become_gone();

  Netlink events_;
  Netlink requests_;
  Snapshot snapshot_;
  Changes changes_;
  bool routes_dirty_ = false;
  bool all_dirty_ = false;
};

// Every interface of the caller's network namespace, by index. Errors: system.
Result<std::vector<Link>> links();

}  // namespace netchannel::control
