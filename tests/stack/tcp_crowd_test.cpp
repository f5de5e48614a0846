// Crowds of connections whose peers mean no good, beside one that wants to work.
#include "tcp_pair.hpp"

namespace netchannel::stack {
namespace {

class TcpCrowd : public TcpPairTest {};

// Sockstress: peers that open connections, ask for much and let nothing in.
TEST_F(TcpCrowd, ACrowdOfClosedWindowsLeavesFramesForOthers) {
  start();
  TcpListen small;
  small.settings.receive_buffer = small.settings.receive_buffer_max = 2000;
  const TcpListenerHandle closed = listen(small);
  TcpListen open;
  open.local = {IpAddress::any_v6(), 81};
  const TcpListenerHandle listener = listen(open);
  TcpConnect options;
  options.peer = {b.options.v4, 81};
  const auto [mine, theirs] = connect(listener, options);
  const testkit::Packet data = testkit::pattern(1 << 20, 9);
  std::vector<Both> crowd;
  for (int i = 0; i < 300; ++i) {
    crowd.push_back(connect(closed));
    (void)a.tcp().write(crowd.back().a, data);
    a.tcp().flush();
    run(1ms);
  }
  for (int round = 0; round < 15; ++round) {
    run(1s);
    for (const Both& both : crowd) (void)a.tcp().write(both.a, data);
    a.tcp().flush();
  }
  const Instant begin = now;
  transfer(a, mine, b, theirs, 4 << 20);
  EXPECT_LT(now - begin, 200ms) << "4 MiB at a round trip of 100 us";
  // Those who have waited longest had to go; the others are told when their peer lets something in.
  const auto alive = [&](const Both& both) { return state(a, both.a) == tcp::State::established; };
  EXPECT_FALSE(std::all_of(crowd.begin(), crowd.end(), alive));
  const auto one = std::find_if(crowd.begin(), crowd.end(), alive);
  ASSERT_NE(one, crowd.end());
  std::array<TcpReady, 64> ready;
  while (a.tcp().take_ready(ready) != 0) {
  }
  read_all(b, one->b);
  EXPECT_TRUE(run_until(5s, [&] {
    const std::span got = std::span(ready).first(a.tcp().take_ready(ready));
    return std::any_of(got.begin(), got.end(), [&](const TcpReady& r) {
      return r.connection == one->a && (r.events & tcp::kWritable) != 0;
    });
  }));
}

}  // namespace
}  // namespace netchannel::stack
