#include "bench/control.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "bench/environment.hpp"
#include "bench/session.hpp"

namespace netchannel::bench {
namespace {

using std::chrono::milliseconds;

struct Ends {
  Ends() {
    std::array<int, 2> fds;
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
    ours.emplace(UniqueFd(fds[0]));
    theirs.reset(fds[1]);
  }
  void say(std::string_view text) {
    ASSERT_EQ(::write(theirs.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::optional<Control> ours;
  UniqueFd theirs;
};

TEST(Control, ReadsOneObjectALineHoweverItArrives) {
  Ends ends;
  ends.say("{\"a\"");
  EXPECT_EQ(ends.ours->receive(milliseconds(1)).error().code, ErrorCode::timed_out);
  ends.say(":1}\n{\"b\":2}\n");
  EXPECT_EQ(get_count(*ends.ours->receive(milliseconds(100)), "a"), 1u);
  EXPECT_TRUE(ends.ours->readable());
  EXPECT_EQ(get_count(*ends.ours->receive(milliseconds(100)), "b"), 2u);
  EXPECT_FALSE(ends.ours->readable());
}

TEST(Control, RefusesWhatIsNotJson) {
  Ends ends;
  ends.say("GET / HTTP/1.1\r\n\n");
  EXPECT_EQ(ends.ours->receive(milliseconds(100)).error().code, ErrorCode::invalid_argument);
}

TEST(Control, RefusesALineWithoutEnd) {
  Ends ends;
  std::thread flood([fd = ends.theirs.get()] {
    const std::string piece(65536, 'x');
    for (int i = 0; i < 20; ++i) {
      if (::send(fd, piece.data(), piece.size(), MSG_NOSIGNAL) < 0) break;
    }
  });
  EXPECT_EQ(ends.ours->receive(std::chrono::seconds(10)).error().code, ErrorCode::invalid_argument);
  ends.ours.reset();
  flood.join();
}

TEST(Control, SaysThatTheFarEndIsGone) {
  Ends ends;
  ends.theirs.reset();
  EXPECT_EQ(ends.ours->receive(milliseconds(100)).error().code, ErrorCode::closed);
  EXPECT_EQ(ends.ours->send({{"x", 1}}).error().code, ErrorCode::closed);
}

TEST(Control, PassesTheFarEndsReasonOn) {
  Ends ends;
  ends.say("{\"error\":\"no such path\"}\n");
  EXPECT_FALSE(ends.ours->ask({{"do", "start"}}, milliseconds(100)).has_value());
  EXPECT_EQ(ends.ours->error_text(), "no such path");
}

TEST(Control, FindsNobodyWhereNobodyServes) {
  const auto control = Control::connect({IpAddress::v4(127, 0, 0, 1), 1}, milliseconds(50));
  ASSERT_FALSE(control.has_value());
  EXPECT_EQ(control.error().code, ErrorCode::refused);
}

TEST(Hello, IsRefusedFromAnotherVersionOrProtocol) {
  const Json sound = make_hello({}, {});
  EXPECT_TRUE(read_hello(sound).has_value());
  Json version = sound;
  version["version"] = "99.0";
  EXPECT_EQ(read_hello(version).error().code, ErrorCode::not_supported);
  Json protocol = sound;
  protocol["protocol"] = "netchannel.control/2";
  EXPECT_EQ(read_hello(protocol).error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(read_hello(Json()).has_value());
  Json block = sound;
  block["block"]["size"] = 1'000'000;
  EXPECT_FALSE(read_hello(block).has_value());
}

}  // namespace
}  // namespace netchannel::bench
