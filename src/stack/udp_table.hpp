// Which socket a datagram is for, and which may share a port: the kernel's rules.
//
// A socket connected to the sender comes first, then one bound to the destination address, then one bound to
// any address of the destination's family, then a dual one ("::" without v6_only). Among equals the newest,
// or, if they share with reuse_port, the one that a hash of the flow chooses.
//
//   port --> group: the unconnected sockets of that port, newest first; how many are connected
//   (local, peer) --> connected sockets, in a table with a keyed hash: its keys are chosen by whoever sends
//
// The port array makes the usual case, one socket on its port, two loads and a comparison.
#pragma once

#include <cstdint>
#include <vector>

#include "base/siphash.hpp"
#include "netchannel/address.hpp"

namespace netchannel::stack {

struct UdpBinding {
  Endpoint local;
  Endpoint peer;  // all zero: not connected
  bool v6_only = false;
  bool reuse_address = false;
  bool reuse_port = false;
  bool connected() const { return peer.port != 0; }
  // Packets of that family can be for it.
  bool takes(bool v4) const {
    return v4 ? local.address.is_v4() || (!v6_only && local.address == IpAddress::any_v6())
              : local.address.is_v6();
  }
};

class UdpTable {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;
  UdpTable(std::uint32_t sockets, const SipKey& key);

  // True if `wanted` may not stand beside what is there. `except`: a socket that does not count, or kNone.
  bool conflicts(const UdpBinding& wanted, std::uint32_t except) const;
  // `socket` is below the number given at construction and not in the table. May allocate.
  void insert(std::uint32_t socket, const UdpBinding& binding);
  void erase(std::uint32_t socket);
  const UdpBinding& binding(std::uint32_t socket) const { return bindings_[socket]; }

  struct Found {
    std::uint32_t socket = kNone;
    bool port_in_use = false;  // none takes it, but the port has sockets: connected to others
  };
  Found find(const Endpoint& local, const Endpoint& peer) const;
  // The sockets that get a broadcast to `local` (Linux: all that take it). `at` begins at 0; kNone ends.
  std::uint32_t next_for_broadcast(const Endpoint& local, std::size_t& at) const;

 private:
  struct Group {
    std::vector<std::uint32_t> unconnected;  // newest first
    std::vector<std::uint32_t> all;
    std::uint32_t connected = 0;
  };
  static int score(const UdpBinding& binding, const IpAddress& local, bool v4);
  std::uint64_t hash(const Endpoint& local, const Endpoint& peer) const;
  std::uint32_t choose(const Group& group, int best, const Endpoint& local, const Endpoint& peer) const;

  SipKey key_;
  std::vector<UdpBinding> bindings_;
  std::vector<std::uint16_t> port_groups_;  // by port; 0: none, else index + 1 of groups_
  std::vector<Group> groups_;
  std::vector<std::uint16_t> free_groups_;
  std::vector<std::uint32_t> buckets_;
  std::vector<std::uint32_t> next_in_bucket_;
};

}  // namespace netchannel::stack
