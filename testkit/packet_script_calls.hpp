// The calls of a packet script, made on a target: names and constants become socket calls, results are
// compared, data is written and verified by its pattern. Descriptors of the script are its own; the target's
// stand behind them.
#pragma once

#include <map>
#include <string>

#include "testkit/packet_script.hpp"
#include "testkit/packet_script_target.hpp"

namespace netchannel::testkit::script {

// The number behind "POLLIN" or "12".
std::optional<std::int64_t> constant(std::string_view name);

class Calls {
 public:
  Calls(Target& target, const Net& net) : target_(target), net_(net) {}

  // How far a call that waits has come.
  struct Progress {
    bool begun = false;
    std::size_t done = 0;
  };
  struct Answer {
    long value = 0;         // or the negated errno
    bool waits = false;     // try again later
    std::string problem{};  // not what the script says, whatever the value
  };
  Answer attempt(const CallEvent& call, Progress& progress);
  // Why the answer is not the script's; "" if it is. Takes note of new descriptors.
  std::string compare(const CallEvent& call, const Answer& answer);
  // Of the connection that was made last. An error says why not.
  tl::expected<std::int64_t, std::string> evaluate(const std::string& term);

 private:
  struct Socket {
    int live = -1;
    bool blocking = true;
    std::uint64_t written = 0;
    std::uint64_t read = 0;
  };
  using Handler = Answer (Calls::*)(const CallEvent&, Progress&);
  struct Known {
    Handler handler;
    std::size_t arguments;
  };
  static const std::map<std::string, Known, std::less<>>& known();

  Socket* socket_of(const CallEvent& call, std::string& problem);
  template <class Function>
  Answer with_socket(const CallEvent& call, Function function);

  Answer do_socket(const CallEvent& call, Progress& progress);
  Answer do_bind(const CallEvent& call, Progress& progress);
  Answer do_listen(const CallEvent& call, Progress& progress);
  Answer do_accept(const CallEvent& call, Progress& progress);
  Answer do_connect(const CallEvent& call, Progress& progress);
  Answer do_read(const CallEvent& call, Progress& progress);
  Answer do_write(const CallEvent& call, Progress& progress);
  Answer do_shutdown(const CallEvent& call, Progress& progress);
  Answer do_close(const CallEvent& call, Progress& progress);
  Answer do_setsockopt(const CallEvent& call, Progress& progress);
  Answer do_getsockopt(const CallEvent& call, Progress& progress);
  Answer do_fcntl(const CallEvent& call, Progress& progress);
  Answer do_poll(const CallEvent& call, Progress& progress);
  Answer do_ioctl(const CallEvent& call, Progress& progress);

  Target& target_;
  Net net_;
  std::map<std::int64_t, Socket> sockets_;
  std::int64_t connection_ = -1;
};

}  // namespace netchannel::testkit::script
