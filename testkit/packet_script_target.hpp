// What a packet script is run against: a TCP that takes and gives IP packets, that has sockets, and that has
// a time of its own. No call here waits; the runner does the waiting, since it must watch the packets
// meanwhile.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "netchannel/address.hpp"
#include "netchannel/bytes.hpp"
#include "netchannel/tcp_info.hpp"
#include "netchannel/time.hpp"
#include "testkit/frames.hpp"
#include "testkit/packet_script.hpp"

namespace netchannel::testkit::script {

// The two ends of the wire. The script's packets come from `remote`, whose ports are first_port + peer - 1.
struct Net {
  IpAddress local, remote, router;
  std::uint8_t prefix = 24;
  std::uint16_t port = 8080;  // what bind(fd, ..., ...) binds
  std::uint16_t first_port = 40001;
  std::uint32_t mtu = 1500;

  static Net v4(std::uint32_t mtu);
  static Net v6(std::uint32_t mtu);  // 20 more than the script says: its segments are as large as IPv4's
};

struct SentPacket {
  Instant when;
  Packet bytes;
};

class Target {
 public:
  virtual ~Target() = default;
  virtual Whose whose() const = 0;
  // How far from the script's time a packet or the end of a call may be after `waited`.
  virtual Duration tolerance(Duration waited) const = 0;

  virtual Instant now() = 0;
  // The next packet that was sent by `until`; none: it is `until` now.
  virtual std::optional<SentPacket> next_sent(Instant until) = 0;
  virtual void arrive(Bytes packet) = 0;
  // "tcp_ecn", "1". No value: done; else why that cannot be.
  virtual std::optional<std::string> sysctl(const std::string& name, const std::string& value) = 0;

  // The socket calls. Each returns what the system call would, or the negated errno; what would wait is
  // -EAGAIN.
  virtual long socket() = 0;
  virtual long bind(int fd, std::uint16_t port) = 0;
  virtual long listen(int fd, int backlog) = 0;
  virtual long accept(int fd) = 0;
  virtual long connect(int fd, const Endpoint& peer) = 0;  // -EINPROGRESS: see connected()
  virtual long connected(int fd) = 0;                      // -EINPROGRESS: not yet
  virtual long read(int fd, MutableBytes to) = 0;
  virtual long write(int fd, Bytes from, bool more) = 0;
  virtual long shutdown(int fd, int how) = 0;
  virtual long close(int fd) = 0;
  virtual long setsockopt(int fd, int level, int name, long value) = 0;
  virtual long linger(int fd, bool on, int seconds) = 0;
  virtual long getsockopt(int fd, int level, int name, long& value) = 0;
  virtual long poll(int fd, short events) = 0;            // which of them are there, and POLLERR, POLLHUP
  virtual long ioctl(int fd, unsigned long request) = 0;  // the number it answers
  virtual std::optional<TcpInfo> info(int fd) = 0;
};

}  // namespace netchannel::testkit::script
