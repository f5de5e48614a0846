// Listening without naming a port, on every path that this machine has.
#include <gtest/gtest.h>

#include "tests/api/every_path.hpp"
#include "tests/api/kernel_stream.hpp"

namespace netchannel {
namespace {

class ListeningOnEveryPath : public OnEveryPath {};

TEST_P(ListeningOnEveryPath, WithoutAPortTakesAFreeOneThatIsReached) {
  auto first = host->listen({ours(), 0});
  ASSERT_TRUE(first) << describe(first.error());
  auto second = host->listen({ours(), 0});
  ASSERT_TRUE(second) << describe(second.error());
  EXPECT_NE(first->local().port, 0);
  EXPECT_NE(first->local().port, second->local().port);
  for (TcpListener* listener : {&*first, &*second}) {
    std::optional<KernelStream> other;
    at_the_other_end([&] { other.emplace(KernelStream::connecting({ours(), listener->local().port})); });
    const auto socket = listener->accept(soon());
    ASSERT_TRUE(socket) << describe(socket.error());
    EXPECT_EQ(socket->local(), (Endpoint{ours(), listener->local().port}));
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, ListeningOnEveryPath, ::testing::ValuesIn(kWays), name_of_way);

}  // namespace
}  // namespace netchannel
