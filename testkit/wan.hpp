// A path with delay, loss, a rate and the rest between two network interfaces, in real time: for programs and
// kernels that know no virtual clock. What befalls a frame is decided by device::LinkPair, as in simulations;
// here is only the thread that carries frames to it, moves its time, and carries them on.
//
//   interface left  --frames-->  LinkPair a ... b  --frames-->  interface right      (and back)
//
// Both are packet sockets. Frames must be whole when they come: no larger than the MTU, checksums filled in,
// so whoever sends into the interfaces has its offloads off; larger ones are dropped and counted as
// too_large. Late by as much as the machine makes the thread wait, tens of microseconds when it is idle; such
// lateness never reorders. Left out: VLAN tags, which a packet socket shows apart from the frame.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include "base/unique_fd.hpp"
#include "device/link.hpp"

namespace netchannel::testkit {

// A packet socket that sees and sends every frame of the interface, in the calling thread's namespace. An
// empty descriptor, with errno, if that is not possible.
UniqueFd packet_port(const std::string& interface);

struct WanStats {
  device::LinkStats to_right, to_left;
  std::uint64_t too_large = 0;  // frames, both ways
  std::uint64_t missed = 0;  // came faster than the thread could take them: the emulator was the bottleneck
};

class Wan {
 public:
  // Starts at once. `a` of the path is left. Aborts if the options are not possible.
  Wan(UniqueFd left, UniqueFd right, const device::LinkOptions& path);
  ~Wan();
  Wan(const Wan&) = delete;

  WanStats stats();
  // Frames sent from now on.
  void change(const device::LinkDirection& to_right, const device::LinkDirection& to_left);

 private:
  struct Carrier;
  void run();
  std::unique_ptr<Carrier> carrier_;
  std::mutex mutex_;  // over the carrier
  std::atomic<bool> stop_ = false;
  UniqueFd wake_;
  std::thread thread_;
};

}  // namespace netchannel::testkit
