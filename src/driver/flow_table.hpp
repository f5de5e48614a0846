// Which channel a flow belongs to: exact flows before wildcards (netchannels, 2006). One thread's, the
// driver's.
#pragma once

#include <cstdint>
#include <optional>

#include "base/keyed_table.hpp"
#include "netchannel/flow.hpp"

namespace netchannel::driver {

using ChannelId = std::uint16_t;

class FlowTable {
 public:
  explicit FlowTable(const SipKey& secret) : exact_(secret), wildcard_(secret) {}

  // False if the flow is claimed already.
  bool claim(const FlowKey& flow, ChannelId channel) { return table_of(flow).insert(flow, channel); }
  // False if it was not claimed by that channel.
  bool unclaim(const FlowKey& flow, ChannelId channel) {
    const auto* owner = table_of(flow).find(flow);
    return owner != nullptr && *owner == channel && table_of(flow).erase(flow);
  }
  std::optional<ChannelId> find(const FlowKey& flow) const {
    if (exact_.size() != 0) {
      if (const auto* channel = exact_.find(flow)) return *channel;
    }
    if (const auto* channel = wildcard_.find(flow.wildcard())) return *channel;
    return std::nullopt;
  }
  std::size_t size() const { return exact_.size() + wildcard_.size(); }
  // Calls fn(flow) for each flow of that channel.
  template <class Fn>
  void for_each_of(ChannelId channel, Fn&& fn) const {
    const auto visit = [&](const FlowKey& flow, ChannelId owner) {
      if (owner == channel) fn(flow);
    };
    exact_.for_each(visit);
    wildcard_.for_each(visit);
  }

 private:
  using Table = KeyedTable<FlowKey, ChannelId>;
  Table& table_of(const FlowKey& flow) { return flow.is_wildcard() ? wildcard_ : exact_; }
  Table exact_;
  Table wildcard_;
};

}  // namespace netchannel::driver
