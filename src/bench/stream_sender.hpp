// The sending side of udp_stream and tcp_stream: messages in bursts, as fast as the path takes them or by a
// plan (a rate). With one flow a burst is one call; with several, each message leaves by the next flow's
// port, as a server's many peers send, so that nothing between here and there can join them. What the path
// refuses for want of room is sent again, not counted as sent; loss is therefore what vanished after a send
// that succeeded.
#pragma once

#include <cstdint>
#include <optional>

#include "bench/histogram.hpp"
#include "bench/transport.hpp"

namespace netchannel::bench {

struct StreamResult {
  double seconds = 0;  // from the first send to the moment when nothing more was sent
  std::uint64_t sent = 0;
  std::uint64_t failed = 0;   // refused for good
  std::uint64_t waits = 0;    // times that there was no room
  std::uint64_t planned = 0;  // paced: messages whose time had come
  Histogram send_lag;         // paced: plan to send, of each burst's first message
  std::optional<Error> error;
};

class StreamSender {
 public:
  StreamSender(Transport& transport, const BlockOptions& options);
  StreamResult run(double seconds);

 private:
  std::size_t send_burst(std::size_t count, Instant now, StreamResult& result);
  std::size_t send_group(std::size_t port, std::size_t count, bool more, StreamResult& result);
  std::size_t due(Instant now, const StreamResult& result) const;
  Instant plan(std::uint64_t message) const;

  Transport& transport_;
  BlockOptions options_;
  std::vector<std::uint32_t> next_number_;  // a port
  std::vector<std::byte> buffer_;           // a burst of messages
  std::vector<Bytes> messages_;
  std::size_t next_port_ = 0;
  Instant start_;
  Instant now_;
};

}  // namespace netchannel::bench
