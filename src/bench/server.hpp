// The far end of `bench`, and three services for any client, over UDP and TCP:
//
//   echo     sends each datagram back to where it came from, and each connection's bytes back over it
//   discard  takes and forgets
//   mirror   as echo, on a port of its own that needs no privilege
//
// All over one host on one path, in one thread, from one poller that also holds the control port. A measuring
// session on a channel path runs in this thread, since the device is this process's; on a kernel path each
// session is a process of its own, as a plain server would have it; on a raw path there is no host, and the
// device is opened for each session.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/control.hpp"
#include "bench/options.hpp"
#include "bench/outcome.hpp"
#include "bench/tcp_services.hpp"
#include "bench/transport.hpp"
#include "netchannel/host.hpp"

namespace netchannel::bench {

struct ServeOptions {
  Lane lane;
  WaitMode wait = WaitMode::adaptive;
  std::string device;
  std::vector<IpAddress> bind;      // empty: every address, both families
  std::vector<Prefix> addresses;    // tap: our own
  std::vector<IpAddress> gateways;  // tap
  bool services = true;
  std::uint16_t echo_port = 7;
  std::uint16_t discard_port = 9;
  std::uint16_t mirror_port = 4171;
  std::uint16_t control_port = kControlPort;
  std::uint32_t mtu = 1500;
  XdpOptions xdp;
  HostHook on_host;
};

class Server {
 public:
  static Outcome<std::unique_ptr<Server>> open(const ServeOptions& options);
  ~Server();
  // The first says what is served on which path and mode, the others why that one.
  const std::vector<std::string>& description() const { return description_; }
  // Until an interrupt.
  Outcome<void> run();

 private:
  enum class Kind : std::uint8_t { echo, discard, mirror };
  struct Service {
    Kind kind;
    UdpSocket socket;
  };
  explicit Server(ServeOptions options) : options_(std::move(options)) {}
  Outcome<void> start();
  Outcome<void> open_host();
  Outcome<void> open_services();
  Outcome<void> open_service(Kind kind, std::uint16_t port);
  Outcome<void> open_tcp_service(Kind kind, const Endpoint& local);
  static tl::unexpected<Failure> cannot_serve(const Error& error, Kind kind, std::string_view protocol,
                                              const Endpoint& local);
  Outcome<void> open_control();
  void describe_all();
  Outcome<void> run_raw();
  void poll_services(Instant deadline);
  void serve(Service& service);
  void accept_client();
  void hear_client(int fd);
  void run_in_child(Control control);
  void handle(Control& control, Duration patience);
  void run_session(Control& control, const BlockOptions& wanted);
  BlockOptions own_block(BlockOptions wanted) const;
  IpAddress data_address(const Control& control) const;

  ServeOptions options_;
  std::optional<Host> host_;
  std::vector<Service> services_;
  std::optional<TcpServices> tcp_services_;
  std::vector<Datagram> datagrams_;
  std::vector<OutDatagram> replies_;
  std::optional<ControlListener> listener_;
  std::vector<std::string> description_;
  std::map<int, Control> clients_;  // connected, and silent so far
  std::size_t sessions_ = 0;        // children that were not waited for yet
  bool in_session_ = false;
};

}  // namespace netchannel::bench
