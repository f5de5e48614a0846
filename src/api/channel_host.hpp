// A host on a channel path: device, driver, channel and stack in one thread, and the kernel kept as control
// plane where it shares the interface: its addresses, routes and neighbours flow into the stack, its bound
// sockets reserve our ports and bring what the rings do not (fragments, broadcasts, datagrams from this
// machine itself).
//
//   poll():  driver.poll -> stack.poll -> driver.transmit, and every 50 us a look at the kernel's descriptors
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "api/channel_device.hpp"
#include "api/datagram_copies.hpp"
#include "api/host_impl.hpp"
#include "api/kernel_tcp.hpp"
#include "api/local_links.hpp"
#include "api/tcp_ports.hpp"
#include "base/unique_fd.hpp"
#include "channel/channel.hpp"
#include "driver/driver.hpp"
#include "stack/stack.hpp"

namespace netchannel {

class ChannelUdp;

class ChannelHost final : public HostImpl {
 public:
  static Result<std::unique_ptr<HostImpl>> open(const HostOptions& options);
  ~ChannelHost() override;

  Result<std::unique_ptr<UdpSocketImpl>> open_udp(const Endpoint& local, const UdpOptions& given) override;
  Result<std::unique_ptr<TcpListenerImpl>> listen(const Endpoint& local, const ListenOptions& given) override;
  Result<std::unique_ptr<TcpSocketImpl>> connect(const Endpoint& peer, const ConnectOptions& given) override;
  bool poll() override;
  bool prepare_sleep() override;
  Instant next_deadline() const override;
  std::uint64_t counter(Counter counter) const override;
  std::uint64_t syscalls() const override;
  bool watch_all(int& also) override;

  // For its sockets.
  stack::Stack& stack() { return *stack_; }
  bool steered() const { return made_.mirror.has_value(); }
  // Ports are the kernel's, held by its sockets.
  bool reserves() const { return steered() || local_; }
  // The kernel's GRO joins datagrams before they are redirected to us only if the port's own socket allows it.
  bool takes_joined_datagrams() const { return made_.path == Path::bulk; }
  LocalLinks* local() const { return local_.get(); }  // null but on the local path
  KernelTcpSockets& kernel_tcp() { return kernel_tcp_; }
  // Gives all that is queued to the device, burst after burst, and asks the kernel for the neighbours that
  // are wanted.
  void transmit();
  // The interface's packets of this flow come to us, until as many unclaims. Errors: address_in_use,
  // no_memory, ...
  Result<void> claim(const FlowKey& flow);
  void unclaim(const FlowKey& flow);
  // Datagrams of that kernel socket are injected into the stack.
  Result<void> watch(ChannelUdp& socket, int fd);
  void forget(ChannelUdp& socket);
  // Whom the stack's word that something has happened to a socket is for.
  void enter(stack::UdpHandle handle, Pollable* socket) { at(udp_sockets_, handle.value & 0xffff) = socket; }
  void enter(stack::TcpHandle handle, Pollable* socket) { at(tcp_sockets_, handle.place) = socket; }
  void enter(stack::TcpListenerHandle handle, Pollable* socket) { at(tcp_listeners_, handle.value) = socket; }
  void add(ClaimSet& claims) { claim_sets_.push_back(&claims); }
  void remove(ClaimSet& claims) { std::erase(claim_sets_, &claims); }
  TcpPorts& tcp_ports() { return *tcp_ports_; }
  DatagramCopies& copies() { return copies_; }

 private:
  explicit ChannelHost(const HostOptions& given) : HostImpl(given) {}
  Result<void> start();
  Result<void> start_stack();
  Result<void> start_local();
  void say_what_was_chosen();
  FlowReply command(FlowCommand::Kind kind, const FlowKey& flow);
  bool look_at_kernel();  // true: a datagram came the slow way
  void take_changes();
  void feed_addresses();
  void feed_routes();
  void ask_for_neighbours();
  void wake_ready();
  static Pollable*& at(std::vector<Pollable*>& sockets, std::size_t index) {
    if (index >= sockets.size()) sockets.resize(index + 1);
    return sockets[index];
  }

  DatagramCopies copies_;
  ChannelDevice made_;
  CounterPage driver_counters_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<driver::Driver> driver_;
  std::unique_ptr<stack::Stack> stack_;
  std::unique_ptr<LocalLinks> local_;
  KernelTcpSockets kernel_tcp_;  // of a local host: to whom else it talks
  UniqueFd kernel_tcp_epoll_;
  UniqueFd kernel_epoll_;  // the mirror and the reservations: asked in a spin, slept on
  std::vector<Pollable*> udp_sockets_, tcp_sockets_, tcp_listeners_;  // by their place in the stack
  std::vector<ClaimSet*> claim_sets_;
  std::unique_ptr<TcpPorts> tcp_ports_;
  std::map<FlowKey, int> claims_;  // how many sockets share each
  Instant next_look_;
  std::uint32_t short_turns_ = 0;
  std::uint64_t sent_at_last_refresh_ = 0;
  std::uint64_t kernel_calls_ = 0;
  std::uint32_t next_tag_ = 0;
};

}  // namespace netchannel
