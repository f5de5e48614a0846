// Where hosts of one machine meet: a socket of the abstract Unix namespace, which is the network namespace's
// own, named after the port that it stands for. Whoever wants to talk to that port connects to the name; if
// nobody listens there, the port is the kernel's. Over the connection each side gives the other its memory
// once, in a message; afterwards it is the link's bell.
//
//   connector                                   acceptor
//      | --- connect ------------------------------> |    each asks the kernel who the other is
//      | --- Hello, link memory, frames -----------> |    and does not wait: its first frames are in the link
//      | <-- Welcome, frames (or: refused) --------- |
//      | <-- bytes: wake up ------------------------ |    both ways, for as long as the link lives
//
// The name is there as long as its socket: a process that is killed leaves nothing behind.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "netchannel/address.hpp"
#include "netchannel/error.hpp"
#include "netchannel/flow.hpp"

namespace netchannel::rendezvous {

// Of what stands at `local`; of "::" that takes no IPv4 another than of one that does.
std::string name_of(Protocol protocol, const Endpoint& local, bool v6_only);
// The names under which `peer` may be met, in the order in which its port would be found.
std::vector<std::string> names_for(Protocol protocol, const Endpoint& peer);

// A socket that listens under that name. Errors: address_in_use, system.
Result<UniqueFd> listen(const std::string& name);
// Connects to the first of the names that somebody listens under; none: refused. Never waits. Errors:
// refused, would_block (there is somebody who does not answer), system.
Result<UniqueFd> connect(const std::vector<std::string>& names);
// No value: nobody more waits.
std::optional<UniqueFd> accept(int listening);
// The other end is the same user's or root's.
bool is_trusted(int fd);

struct Hello {
  static constexpr std::uint32_t kMagic = 0x6e636831;  // "nch1"
  std::uint32_t magic = kMagic;
  std::uint32_t version = 1;
  std::uint32_t slots = 0;  // of the frames that come with it
  std::uint32_t slot_size = 0;
};

struct Welcome {
  enum Status : std::uint32_t { accepted, other_user, other_version, no_room, bad_memory };
  std::uint32_t magic = Hello::kMagic;
  std::uint32_t status = accepted;
  std::uint32_t slots = 0;
  std::uint32_t slot_size = 0;
};
// For the user: why the other side refuses.
const char* reason_of(std::uint32_t status);

// A message of that type and descriptors beside it. False: the other side is gone, or takes no message.
bool send(int fd, const Hello& hello, std::array<int, 2> memory);
bool send(int fd, const Welcome& welcome, int memory);  // -1: none

// What has come. Nothing is believed but its size.
template <class Message>
struct Received {
  Message message;
  std::vector<UniqueFd> memory;
};
// Errors: would_block (nothing there), closed (the other side is gone, or what came is no such message).
Result<Received<Hello>> receive_hello(int fd);
Result<Received<Welcome>> receive_welcome(int fd);

}  // namespace netchannel::rendezvous
