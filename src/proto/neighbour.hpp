// Who has which MAC on the link: ARP's table (RFC 826, RFC 1122 section 2.3.2) and IPv6 neighbour discovery's
// (RFC 4861 section 7) in one. The machine of states is RFC 4861's for both, since ARP has none:
//
//              use()                 answer to our question              30 s
//   (nothing) ------> incomplete ------------------------> reachable ----------> stale
//                         |  3 questions, 1 s apart             ^                   | use()
//                         v                                     | answer            v  5 s
//                      failed: forgotten                      probe <------------ delay
//                         ^  3 questions, 1 s apart             |
//                         +-------------------------------------+
//
// An entry is made only because we want to send, or because a neighbour asks for our own address; what nobody
// asked for changes existing entries at most, and makes them stale, so that they are verified on use. The
// table has a fixed size: the least recently used entry makes room, one that somebody waits for last.
//
// With `resolved_outside` the kernel resolves: set() and forget() bring its entries, which are used as given,
// and the actions ask for what is missing.
//
// The cache moves no packet. Packets that wait for an entry are the stack's, which files them under
// Answer::index.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/siphash.hpp"
#include "netchannel/address.hpp"
#include "netchannel/time.hpp"

namespace netchannel::proto {

// RFC 4861 section 10.
inline constexpr Duration kReachableTime = std::chrono::seconds(30);
inline constexpr Duration kDelayFirstProbe = std::chrono::seconds(5);
inline constexpr Duration kRetransTimer = std::chrono::seconds(1);
inline constexpr std::uint8_t kMaxSolicit = 3;

enum class NeighbourState : std::uint8_t { incomplete, reachable, stale, delay, probe, fixed };

struct NeighbourAction {
  enum class Kind : std::uint8_t {
    ask_all,  // broadcast request or multicast solicitation
    ask_one,  // the same to `mac` alone
    resolve,  // have the kernel do it
    failed,   // the entry is gone; what waits under `index` is lost
  };
  Kind kind = Kind::ask_all;
  IpAddress address;
  MacAddress mac;
  std::uint32_t index = 0;
};

class NeighbourCache {
 public:
  struct Options {
    std::uint32_t capacity = 1024;
    bool resolved_outside = false;
    SipKey key;
  };
  explicit NeighbourCache(const Options& options);

  struct Answer {
    bool usable = false;  // `mac` holds; else the packet waits under `index`
    MacAddress mac;
    std::uint32_t index = 0;
    Instant valid_until;   // usable: ask again then, or after any change
    bool act_now = false;  // do `action` at once: the first question
    NeighbourAction action;
    std::optional<std::uint32_t> evicted;  // what waits under this index is lost
  };
  // A packet is about to be sent to `address`.
  Answer use(const IpAddress& address, Instant now);

  // What a message did. `changed`: prebuilt headers to this neighbour are void. `index`: if resolved, what
  // waits there may go to `mac`.
  struct Effect {
    bool changed = false;
    bool resolved = false;
    std::uint32_t index = 0;
    MacAddress mac;
    std::optional<std::uint32_t> evicted;
  };
  // A neighbour has told its own MAC while asking for one of ours: makes or updates an entry.
  Effect on_question(const IpAddress& sender, const MacAddress& mac, Instant now);
  // A neighbour has told a MAC: an ARP reply, a gratuitous ARP, a neighbour advertisement.
  struct Telling {
    std::optional<MacAddress> mac;
    bool solicited = false;  // it answers a question of ours, as far as it says
    bool overrides = true;   // of an advertisement
  };
  Effect on_answer(const IpAddress& address, const Telling& telling, Instant now);

  // From outside. set() makes or replaces an entry; forget() removes one and tells whether packets may wait
  // for it.
  Effect set(const IpAddress& address, const MacAddress& mac, Instant now);
  std::optional<std::uint32_t> forget(const IpAddress& address);

  // Does what is due, at most out.size() actions; the rest stays due.
  std::size_t poll(Instant now, std::span<NeighbourAction> out);
  Instant next_deadline() const { return next_deadline_; }

  std::optional<NeighbourState> state(const IpAddress& address) const;
  std::size_t size() const { return used_; }
  std::uint32_t capacity() const { return static_cast<std::uint32_t>(entries_.size()); }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Entry {
    IpAddress address;
    MacAddress mac;
    NeighbourState state = NeighbourState::incomplete;
    std::uint8_t asked = 0;
    bool used = false;
    Instant deadline = kForever;  // of the timer, or of reachability
    std::uint32_t timer = kNone;  // place in timers_
    std::uint32_t next_in_bucket = kNone;
    std::uint32_t older = kNone, newer = kNone;  // order of use
  };
  std::uint32_t bucket_of(const IpAddress& address) const;
  std::uint32_t find(const IpAddress& address) const;
  std::uint32_t make(const IpAddress& address, std::optional<std::uint32_t>& evicted);
  void remove(std::uint32_t index);
  std::uint32_t victim() const;
  void touch(std::uint32_t index);
  void unlink(std::uint32_t index);
  void enter(std::uint32_t index, NeighbourState state, Instant deadline);
  void start_timer(std::uint32_t index, Instant deadline);
  void stop_timer(std::uint32_t index);
  NeighbourAction due(std::uint32_t index, Instant now);

  bool resolved_outside_;
  SipKey key_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> buckets_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> timers_;  // entries with a running timer, in no order
  std::uint32_t oldest_ = kNone, newest_ = kNone;
  std::size_t used_ = 0;
  Instant next_deadline_ = kForever;
};

}  // namespace netchannel::proto
