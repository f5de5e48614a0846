// Deadlines, `least` and signals. What would hang for ever with recvmmsg's own timeout must end here.
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "rig.hpp"

namespace netchannel::kernel {
namespace {

using namespace std::chrono_literals;

class Waiting : public BothWays {
 protected:
  std::size_t receive_until(UdpSocket& socket, std::size_t least, Instant deadline) {
    auto got = socket.receive_blocking(out, least, deadline);
    EXPECT_TRUE(got) << describe(got.error());
    return got ? *got : 0;
  }
  UdpSocket open_elsewhere(const Endpoint& local) { return elsewhere.open(local, options()); }
  Rig elsewhere;  // for the sockets of a second thread
  std::array<Datagram, 8> out;
};
INSTANTIATE_TEST_SUITE_P(Kernel, Waiting, ::testing::Bool(),
                         [](const auto& given) { return given.param ? "batched" : "plain"; });

TEST_P(Waiting, a_deadline_is_kept_although_no_datagram_ever_comes) {
  auto server = open(at("127.0.0.1:0"));
  const Instant deadline = monotonic_now() + 20ms;
  EXPECT_EQ(receive_until(server, 1, deadline), 0u);
  EXPECT_GE(monotonic_now(), deadline);
}

TEST_P(Waiting, a_deadline_is_kept_although_fewer_come_than_were_waited_for) {
  auto server = open(at("127.0.0.1:0"));
  auto client = open(at("127.0.0.1:0"));
  EXPECT_EQ(send_one(client, bytes_of("only"), server.local()), SendStatus::queued);
  const Instant deadline = monotonic_now() + 20ms;
  EXPECT_EQ(receive_until(server, 2, deadline), 1u);
  EXPECT_GE(monotonic_now(), deadline);
  EXPECT_EQ(text_of(out[0].payload), "only");
}

TEST_P(Waiting, a_deadline_that_has_passed_still_takes_what_is_there) {
  auto server = open(at("127.0.0.1:0"));
  auto client = open(at("127.0.0.1:0"));
  EXPECT_EQ(receive_until(server, 1, {1}), 0u);
  EXPECT_EQ(send_one(client, bytes_of("x"), server.local()), SendStatus::queued);
  EXPECT_EQ(receive_until(server, 1, {1}), 1u);
}

TEST_P(Waiting, a_wait_for_none_never_waits) {
  auto server = open(at("127.0.0.1:0"));
  EXPECT_EQ(receive_until(server, 0, kForever), 0u);
  EXPECT_EQ(server.syscalls(), 1u);
}

TEST_P(Waiting, a_wait_ends_when_as_many_are_there_as_were_waited_for) {
  auto server = open(at("127.0.0.1:0"));
  auto client = open_elsewhere(at("127.0.0.1:0"));
  for (const bool forever : {false, true}) {
    std::thread sender([&] {
      for (int i = 0; i < 3; ++i) {
        std::this_thread::sleep_for(2ms);
        EXPECT_EQ(send_one(client, bytes_of(std::to_string(i)), server.local()), SendStatus::queued);
      }
    });
    EXPECT_EQ(receive_until(server, 3, forever ? kForever : soon()), 3u);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(text_of(out[i].payload), std::to_string(i));
    sender.join();
  }
}

TEST_P(Waiting, more_are_never_waited_for_than_there_is_room_for) {
  auto server = open(at("127.0.0.1:0"));
  auto client = open(at("127.0.0.1:0"));
  for (int i = 0; i < 9; ++i) EXPECT_EQ(send_one(client, bytes_of("x"), server.local()), SendStatus::queued);
  EXPECT_EQ(receive_until(server, 100, kForever), 8u);
}

TEST_P(Waiting, blocking_for_ever_makes_no_other_call_than_the_receiving_one) {
  auto server = open(at("127.0.0.1:0"));
  auto client = open_elsewhere(at("127.0.0.1:0"));
  std::thread sender([&] {
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(send_one(client, bytes_of("x"), server.local()), SendStatus::queued);
  });
  EXPECT_EQ(receive_until(server, 1, kForever), 1u);
  EXPECT_EQ(server.syscalls(), 1u);
  sender.join();
}

// Sends this thread a signal every few milliseconds until it is destroyed: one of them meets the wait.
class Signals {
 public:
  Signals() : target_(::pthread_self()) {
    struct sigaction action{};
    action.sa_handler = [](int) {};
    ::sigaction(SIGUSR1, &action, &before_);
    sender_ = std::thread([this] {
      while (!done_) {
        std::this_thread::sleep_for(3ms);
        ::pthread_kill(target_, SIGUSR1);
      }
    });
  }
  ~Signals() {
    done_ = true;
    sender_.join();
    ::sigaction(SIGUSR1, &before_, nullptr);
  }

 private:
  pthread_t target_;
  struct sigaction before_{};
  std::atomic<bool> done_ = false;
  std::thread sender_;
};

TEST_P(Waiting, a_signal_interrupts_and_says_so) {
  auto server = open(at("127.0.0.1:0"));
  const Signals signals;
  for (const Instant deadline : {kForever, soon()}) {
    auto got = server.receive_blocking(out, 1, deadline);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, ErrorCode::interrupted);
  }
}

TEST_P(Waiting, what_had_come_before_a_signal_is_not_lost) {
  auto server = open(at("127.0.0.1:0"));
  auto client = open(at("127.0.0.1:0"));
  for (const Instant deadline : {kForever, soon()}) {
    EXPECT_EQ(send_one(client, bytes_of("x"), server.local()), SendStatus::queued);
    const Signals signals;
    EXPECT_EQ(receive_until(server, 2, deadline), 1u);
    EXPECT_EQ(text_of(out[0].payload), "x");
  }
  // The signal is past: it is not told to whoever receives next.
  EXPECT_EQ(receive_until(server, 0, kForever), 0u);
}

TEST_P(Waiting, an_error_after_the_first_datagram_is_told_by_the_next_call) {
  auto peer = std::make_unique<UdpSocket>(open_elsewhere(at("127.0.0.1:0")));
  auto client = open(at("127.0.0.1:0"));
  ASSERT_TRUE(client.connect(peer->local()));
  for (const Instant deadline : {kForever, soon()}) {
    std::thread other([&] {
      EXPECT_EQ(send_one(*peer, bytes_of("first"), client.local()), SendStatus::queued);
      int queued = 1;
      while (queued != 0) {
        std::this_thread::sleep_for(1ms);
        ::ioctl(client.fd(), SIOCINQ, &queued);
      }
      const Endpoint address = peer->local();
      peer.reset();
      ::send(client.fd(), "x", 1, 0);  // met by ICMP port unreachable
      peer = std::make_unique<UdpSocket>(open_elsewhere(address));
    });
    EXPECT_EQ(receive_until(client, 2, deadline), 1u);
    EXPECT_EQ(text_of(out[0].payload), "first");
    other.join();
    auto next = client.receive(out, monotonic_now());
    ASSERT_FALSE(next);
    EXPECT_EQ(next.error().code, ErrorCode::refused);
    EXPECT_EQ(*client.receive(out, monotonic_now()), 0u);
  }
}

}  // namespace
}  // namespace netchannel::kernel
