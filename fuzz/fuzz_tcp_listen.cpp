// A listener under anything: segments of a few flows, time, a full accept queue. Bounded, and a handshake it
// accepts is one it has answered.
#include <array>

#include "fuzz/fuzz_tcp.hpp"
#include "proto/tcp/listen.hpp"

using namespace netchannel;
using namespace netchannel::tcp;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Choices in(data, size);
  static CounterPage counters;
  ListenOptions options;
  options.settings = fuzz::settings_from(in);
  options.syn_queue = 1 + in.byte() % 8U;
  options.cookies = in.flag();
  Listener listener(options, counters);
  Instant now{1'000'000'000'000};
  std::array<Seq, 16> answered{};
  std::array<bool, 16> has_answer{};
  while (!in.done()) {
    const std::uint8_t peer = in.byte() % 16;
    const FlowKey flow{
        Protocol::tcp, {IpAddress::v4(1), 80}, {IpAddress::v4(2), static_cast<std::uint16_t>(1000 + peer)}};
    const std::uint8_t what = in.byte();
    if ((what & 7) == 0) {
      now = now + std::chrono::milliseconds(in.word());
      std::array<Listener::Retry, 3> out;
      const std::size_t count = listener.on_timer(out, now);
      for (std::size_t i = 0; i < count; ++i)
        fuzz::require(out[i].segment.flags.syn() && out[i].segment.flags.ack());
      if (count < out.size()) fuzz::require(listener.next_deadline() > now);
      continue;
    }
    SegmentIn segment;
    segment.flags = {(what & 8) != 0    ? in.byte()
                     : (what & 16) != 0 ? wire::TcpFlags::kAck
                                        : wire::TcpFlags::kSyn};
    segment.seq = {in.byte() % 8U};
    segment.ack = (what & 32) != 0 ? Seq{in.number()} : answered[peer] + 1;
    if ((what & 64) != 0) segment.options.timestamps = {in.byte(), in.number()};
    if ((what & 128) != 0) segment.options.mss = in.word();
    const ListenResult result = listener.on_segment(
        {.flow = flow, .accept_queue_full = (what & 6) == 6 && in.flag(), .after = {}}, segment, now);
    fuzz::require(listener.size() <= options.syn_queue);
    if (result.action == ListenAction::reply && result.reply.flags.syn()) {
      answered[peer] = result.reply.seq;
      has_answer[peer] = true;
    }
    if (result.action == ListenAction::reply)
      fuzz::require(!segment.flags.rst() || !result.reply.flags.rst());
    if (result.action != ListenAction::accept) continue;
    fuzz::require(has_answer[peer] && segment.flags.ack() && segment.ack == result.handshake.iss + 1);
    fuzz::require(result.handshake.peer_mss >= wire::kMinMss && !listener.contains(flow));
  }
  return 0;
}
