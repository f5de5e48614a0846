// A thread that keeps a host's promises to its peers while the owner computes (design decision 12):
// acknowledgements, retransmissions, window updates, answers. It takes a turn only when the owner has not for
// a while, and leaves as soon as the owner is back.
//
//   owner in a call        holds the lock; the keeper does not even look
//   owner asleep in a wait the keeper sleeps too, until the owner has woken up: idle costs nothing
//   owner computing        after kPatience the keeper polls, and sleeps on the device in between
//
// The owner pays one uncontended lock a call. Frames never leave the owner's side of the lock: with a keeper
// datagrams are copied out of the stack's memory (ChannelUdp), since whoever holds one may drop it any time.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "base/unique_fd.hpp"
#include "netchannel/error.hpp"
#include "netchannel/time.hpp"

namespace netchannel {

struct HostImpl;

class Keeper {
 public:
  // Errors: system (no descriptor or thread left).
  static Result<std::unique_ptr<Keeper>> start(HostImpl& host);
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // The owner's. hold() around each call into the host; asleep() and awake() around a sleep within one.
  std::unique_lock<std::mutex> hold();
  void asleep();
  void awake();

 private:
  explicit Keeper(HostImpl& host) : host_(host) {}
  void run();
  bool owner_is_away() const;
  void stand_in();
  void sleep(Instant until, bool on_device);

  static constexpr Duration kPatience = std::chrono::milliseconds(5);
  HostImpl& host_;
  UniqueFd stop_;  // an eventfd
  std::mutex mutex_;
  std::atomic<std::int64_t> owner_seen_{0};  // nanoseconds: when the owner was in a call last
  std::atomic<bool> owner_asleep_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace netchannel
