// Which addresses are ours and which are our link's: asked of every packet, so the common host with a handful
// of addresses is answered by comparing with each, and only a host with many by a search.
#pragma once

#include <span>
#include <vector>

#include "netchannel/address.hpp"

namespace netchannel::stack {

class LocalNet {
 public:
  void set(std::span<const Prefix> addresses);
  // Every address of one station is: on a device that joins hosts of one machine, whoever sends has judged
  // where to.
  void set_all_ours(bool on) { all_ours_ = on; }
  std::span<const Prefix> addresses() const { return prefixes_; }

  bool is_ours(const IpAddress& address) const {
    if (all_ours_) return !address.is_multicast() && !address.is_unspecified();
    if (sorted_.size() > kFew) return search(address);
    for (const IpAddress& mine : sorted_) {
      if (mine == address) return true;
    }
    return false;
  }
  // 255.255.255.255 or the broadcast address of a network of ours. Each ends in two ones at least (a network
  // of 31 bits has none), which answers for three of four addresses.
  bool is_broadcast(const IpAddress& address) const {
    return (address.bytes()[15] & 3) == 3 && search_broadcast(address);
  }
  // In a network of ours.
  bool is_on_link(const IpAddress& address) const;
  // ff02::1 or the solicited-node group of an address of ours (RFC 4291 section 2.8).
  bool is_our_group(const IpAddress& group) const;

 private:
  static constexpr std::size_t kFew = 8;
  bool search(const IpAddress& address) const;
  bool search_broadcast(const IpAddress& address) const;
  bool all_ours_ = false;
  std::vector<Prefix> prefixes_;
  std::vector<IpAddress> sorted_;
  std::vector<IpAddress> broadcasts_;
};

}  // namespace netchannel::stack
