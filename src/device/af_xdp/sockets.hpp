// The AF_XDP sockets of an interface: one UMEM, and for each receive queue a socket with its four rings. Made
// in one go, with zero-copy where the driver has it, else with copying; gone in one go.
#pragma once

#include <xdp/xsk.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "device/af_xdp/af_xdp.hpp"
#include "device/af_xdp/rx_chain.hpp"

namespace netchannel::device {

struct XskQueue {
  explicit XskQueue(RxChain rx_chain) : chain(rx_chain) {}
  xsk_ring_prod fill{};
  xsk_ring_cons rx{};
  xsk_ring_prod tx{};  // the first queue's only
  xsk_ring_cons completion{};
  xsk_socket* socket = nullptr;
  int fd = -1;  // the socket's
  std::uint32_t lent =
      0;  // slots in the fill ring, in the kernel's hands or in the RX ring; at most the fill ring's size
  RxChain chain;
};

class XskSockets {
 public:
  // Errors: not_permitted, memlock_too_small, device_busy, not_supported, system.
  static Result<std::unique_ptr<XskSockets>> open(const XdpCapabilities& interface,
                                                  const AfXdpOptions& options, FrameRegion& region,
                                                  CounterPage& counters);
  ~XskSockets();
  XskSockets(const XskSockets&) = delete;
  XskSockets& operator=(const XskSockets&) = delete;

  std::vector<std::unique_ptr<XskQueue>> queues;  // by queue number
  std::uint32_t chunk_size = 0;
  bool multi_buffer = false;
  bool zero_copy = false;
  bool need_wakeup = true;
  bool busy_poll = false;
  std::string why_not_zero_copy;  // a sentence's part, if it was tried and refused
  int sleep_fd() const { return queues.size() == 1 ? queues[0]->fd : epoll_.get(); }

 private:
  XskSockets() = default;
  Result<void> bind_all(const XdpCapabilities& interface, const AfXdpOptions& options, FrameRegion& region,
                        CounterPage& counters);
  int create_umem(const AfXdpOptions& options, FrameRegion& region);
  int create_socket(const XdpCapabilities& interface, const AfXdpOptions& options, std::uint32_t queue);
  Result<void> tune(const AfXdpOptions& options);
  Result<void> watch_all();
  void close();

  xsk_umem* umem_ = nullptr;
  bool umem_bound_ =
      false;  // the first socket, which is the UMEM's, has taken over its fill and completion ring
  UniqueFd epoll_;
};

}  // namespace netchannel::device
