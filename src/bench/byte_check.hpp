// The check of tcp_stream: that each connection's bytes are the messages that were written to it, one behind
// the other, none missing, twice or altered, however they are cut up on the way.
//
// Of each message the number is compared, and of its pattern 64 bytes in each KiB (the whole, up to 64
// bytes), a window that moves on with the number, so that after 16 messages each place has been looked at. A
// byte that is lost or comes twice shifts all that follows, and shows at once. What it costs stands in
// docs/benchmarks.md.
#pragma once

#include <cstdint>
#include <vector>

#include "netchannel/bytes.hpp"

namespace netchannel::bench {

class ByteCheck {
 public:
  ByteCheck(std::uint32_t size, std::size_t connections);
  // The next bytes of that connection.
  void see(std::size_t connection, Bytes bytes) noexcept;
  void reset() noexcept { received_ = corrupted_ = 0; }   // counts only: the streams go on
  std::uint64_t received() const { return received_; }    // whole messages
  std::uint64_t corrupted() const { return corrupted_; }  // of them, those that are not as written

 private:
  struct Stream {
    std::uint32_t number = 0;  // of the message that comes next, or goes on
    std::uint32_t offset = 0;  // in it
    bool intact = true;        // so far
  };
  bool number_intact(std::uint32_t number, std::size_t offset, Bytes part) const noexcept;
  bool pattern_intact(std::uint32_t number, std::size_t offset, Bytes part) const noexcept;

  std::uint32_t size_;
  std::size_t stride_;  // from window to window, a power of two
  std::vector<Stream> streams_;
  std::uint64_t received_ = 0;
  std::uint64_t corrupted_ = 0;
};

}  // namespace netchannel::bench
