// On a device that joins hosts of one machine (LinkFacts::local) all have the same addresses, and what tells
// them apart is the port: which station, by its MAC address, has an endpoint. The owner says so when it has
// found a peer; who speaks to us says so by speaking.
//
// Bounded: beyond kMost endpoints new ones are not learnt, and answers to them do not leave.
#pragma once

#include <optional>
#include <vector>

#include "base/keyed_table.hpp"
#include "netchannel/address.hpp"
#include "netchannel/flow.hpp"

namespace netchannel::stack {

class LocalPeers {
 public:
  explicit LocalPeers(const SipKey& key) : table_(key) {}

  // True if that changes where something known goes to.
  bool set(Protocol protocol, const Endpoint& peer, const MacAddress& station) {
    const FlowKey key{protocol, peer, {}};
    if (key == last_key_ && station == last_station_) return false;
    last_key_ = key;
    last_station_ = station;
    if (MacAddress* known = table_.find(key)) return std::exchange(*known, station) != station;
    if (table_.size() < kMost) table_.insert(key, station);
    return false;
  }
  std::optional<MacAddress> find(Protocol protocol, const Endpoint& peer) const {
    const MacAddress* station = table_.find({protocol, peer, {}});
    return station == nullptr ? std::nullopt : std::optional(*station);
  }
  void forget(Protocol protocol, const Endpoint& peer) {
    last_key_ = {};
    table_.erase({protocol, peer, {}});
  }
  void forget(const MacAddress& station) {
    last_key_ = {};
    std::vector<FlowKey> gone;
    table_.for_each([&](const FlowKey& key, const MacAddress& of) {
      if (of == station) gone.push_back(key);
    });
    for (const FlowKey& key : gone) table_.erase(key);
  }
  std::size_t size() const { return table_.size(); }

 private:
  static constexpr std::size_t kMost = 65536;
  KeyedTable<FlowKey, MacAddress> table_;
  FlowKey last_key_;  // most say it again and again
  MacAddress last_station_;
};

}  // namespace netchannel::stack
