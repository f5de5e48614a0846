// The links of a local host: made when somebody is to be reached who has a name (rendezvous.hpp), or when
// somebody meets us under one of ours; gone with the process at the other end. The device moves frames
// through them and the stack knows which endpoint is behind which; this is where both are told.
//
// A peer that has gone is noticed by its bell, at the next look. What it had sent is read first; then its
// connections end and its memory is given back. One thread's, the host's.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/rendezvous.hpp"
#include "device/shm.hpp"
#include "netchannel/time.hpp"
#include "stack/stack.hpp"

namespace netchannel {

class LocalLinks {
 public:
  struct Parts {
    device::ShmDevice& device;
    stack::Stack& stack;
    int frames = -1;  // the memfd of the slots that peers read from
    std::uint32_t slots = 0;
    std::uint32_t slot_size = 0;
    bool any_user = false;
    std::vector<std::string>& explain;
  };
  // Errors: system.
  static Result<std::unique_ptr<LocalLinks>> open(const Parts& parts);

  // Lets other hosts find that port. That they cannot is told in explain(); the kernel serves them then.
  void offer(Protocol protocol, const Endpoint& local, bool v6_only);
  void withdraw(Protocol protocol, const Endpoint& local, bool v6_only);

  // True: the stack can send to `peer`. False: the kernel must, and explain() says why.
  bool reach(Protocol protocol, const Endpoint& peer, Instant now);
  // As before, but if that is known already, a look-up answers.
  bool reach_soon(Protocol protocol, const Endpoint& peer, Instant now);
  // What stands at `peer` is not what was met there.
  void forget(Protocol protocol, const Endpoint& peer);
  bool is_of_this_machine(const IpAddress& address, Instant now);

  int fd() const { return epoll_.get(); }  // readable when look() has something to do, unless has_business()
  bool has_business() const { return !dying_.empty() || parts_.device.has_gone(); }
  // Lets in who has come, and buries who has gone. Never waits. True if it had something to do.
  bool look();
  std::uint64_t syscalls() const { return calls_; }

 private:
  explicit LocalLinks(const Parts& parts) : parts_(parts) {}
  enum class Awaited : std::uint8_t { visitor, hello, welcome };
  struct Waiting {
    Awaited what;
    UniqueFd fd;      // of a welcome it is the device's
    MacAddress link;  // of a welcome
    std::string name;
  };
  bool await(int fd, Waiting waiting);
  void leave(int fd);
  bool connect(Protocol protocol, const Endpoint& peer);
  void let_in(int listening);
  void on_hello(int fd);
  std::uint32_t admit(UniqueFd& visitor, rendezvous::Received<rendezvous::Hello>& hello);
  void drop_one_unheard();
  void on_welcome(int fd);
  bool bury();
  void say(std::string sentence);

  static constexpr std::size_t kMostUnheard = 256;  // visitors that have said nothing yet
  Parts parts_;
  UniqueFd epoll_;
  std::map<int, Waiting> waiting_;
  std::map<std::string, int> offers_;
  std::vector<MacAddress> dying_;
  struct Known {
    bool ours = false;
    Instant until;
  };
  std::map<IpAddress, Known> addresses_;
  std::map<std::pair<Protocol, Endpoint>, Instant> not_here_;  // and not to be asked for again until then
  std::size_t unheard_ = 0;
  std::uint64_t calls_ = 0;
};

}  // namespace netchannel
