// The TCP workloads' two ends in one process, on one host of the kernel path, where a test can look between
// them; and the services of `serve`.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "bench/crr_client.hpp"
#include "bench/far_end.hpp"
#include "bench/message.hpp"
#include "bench/tcp_services.hpp"
#include "bench/tcp_transport.hpp"

namespace netchannel::bench {
namespace {

using namespace std::chrono_literals;

const IpAddress kHere = IpAddress::v4(127, 0, 0, 1);

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
std::string text_of(Bytes bytes) {
  std::string text(bytes.size(), '\0');
  if (!bytes.empty()) std::memcpy(text.data(), bytes.data(), bytes.size());
  return text;
}

Host open_host(WaitMode wait = WaitMode::spin) {
  HostOptions options;
  options.path = Path::kernel;
  options.wait = wait;
  auto host = Host::open(options);
  EXPECT_TRUE(host) << describe(host.error());
  return std::move(*host);
}

BlockOptions options_for(Workload workload, std::uint32_t size, std::uint32_t pairs = 1) {
  BlockOptions out;
  out.workload = workload;
  out.lane = *parse_lane("kernel");
  out.wait = WaitMode::spin;
  out.size = size;
  out.pairs = pairs;
  return out;
}

class TransportTest : public ::testing::Test {
 protected:
  void open(Workload workload, std::uint32_t size) {
    auto made = TcpTransport::server(host, options_for(workload, size), kHere);
    ASSERT_TRUE(made) << describe(made.error());
    server = std::move(*made);
    auto socket = host.connect({kHere, server->ports().at(0)});
    ASSERT_TRUE(socket) << describe(socket.error());
    client.emplace(std::move(*socket));
    EXPECT_TRUE(receive().empty());  // takes the connection in
  }
  void say(std::string_view text) {
    ASSERT_EQ(client->write(bytes_of(text), More::no, soon()).value_or(0), text.size());
  }
  std::vector<std::string> receive(std::size_t most = 64) {
    const auto got = server->receive(kAnyPort, most, host.now() + 20ms);
    EXPECT_TRUE(got) << describe(got.error());
    std::vector<std::string> out;
    for (const Arrived& arrived : got ? *got : std::span<const Arrived>{})
      out.push_back(text_of(arrived.payload));
    return out;
  }
  Instant soon() const { return host.now() + 5s; }

  Host host = open_host();
  std::unique_ptr<TcpTransport> server;
  std::optional<TcpSocket> client;
};

using Texts = std::vector<std::string>;

TEST_F(TransportTest, FindsMessagesInTheStreamHoweverTheyAreCut) {
  open(Workload::tcp_rr, 4);
  say("aaaabb");
  EXPECT_EQ(receive(), (Texts{"aaaa"}));
  say("bbc");
  EXPECT_EQ(receive(), (Texts{"bbbb"}));
  say("c");
  EXPECT_EQ(receive(), Texts{});
  say("ccddddeeee");
  EXPECT_EQ(receive(), (Texts{"cccc", "dddd", "eeee"}));
}

TEST_F(TransportTest, HandsOutNoMoreMessagesThanAreAskedForAndKeepsTheRest) {
  open(Workload::tcp_rr, 2);
  say("aabbccd");
  EXPECT_EQ(receive(2), (Texts{"aa", "bb"}));
  EXPECT_EQ(receive(2), (Texts{"cc"}));
  say("d");
  EXPECT_EQ(receive(2), (Texts{"dd"}));
}

TEST_F(TransportTest, AnswersWholeRequestsWithWholeReplies) {
  open(Workload::tcp_rr, 4);
  say("aaaabbbbcc");
  EXPECT_EQ(receive().size(), 2u);
  EXPECT_EQ(server->send_back(), 2u);
  std::array<std::byte, 64> out;
  ASSERT_EQ(client->read(out, soon()).value_or(0), 8u);
  EXPECT_EQ(text_of(Bytes(out).first(8)), "aaaabbbb");
}

TEST_F(TransportTest, GivesTheBytesOfAStreamAsTheyCome) {
  open(Workload::tcp_stream, 4);
  say("aaaabb");
  EXPECT_EQ(receive(), (Texts{"aaaabb"}));
  say("b");
  EXPECT_EQ(receive(), (Texts{"b"}));
}

TEST_F(TransportTest, AClientThatGoesEndsItsConnectionAndNotTheServer) {
  open(Workload::tcp_rr, 4);
  say("aaaa");
  client.reset();
  EXPECT_EQ(receive(), (Texts{"aaaa"}));
  EXPECT_EQ(receive(), Texts{});
  EXPECT_EQ(receive(), Texts{});
}

TEST(TcpTransport, SendsTheRestOfAMessageThatWasTakenInPartBeforeTheNext) {
  Host host = open_host();
  BlockOptions options = options_for(Workload::tcp_rr, 1 << 20);
  auto listener = host.listen({kHere, 0});
  ASSERT_TRUE(listener);
  auto transport = TcpTransport::client(host, options);
  ASSERT_TRUE(transport->connect_to({kHere, {listener->local().port}, {}}, 1));
  auto far = listener->accept(host.now() + 5s);
  ASSERT_TRUE(far);
  std::vector<std::byte> message(options.size);
  write_pattern(message);
  std::size_t taken = 0;
  for (std::uint32_t tries = 0; tries < 100 && taken < 100; ++tries) {
    write_message(message, static_cast<std::uint32_t>(taken), 0);
    const Bytes one = message;
    const auto sent = transport->send(0, {&one, 1}, false);
    ASSERT_TRUE(sent);
    taken += sent->taken;
    if (sent->taken == 0) break;
  }
  ASSERT_GT(taken, 0u);
  ASSERT_LT(taken, 100u);
  // What is in part there comes whole once somebody reads, without another send.
  std::size_t got = 0;
  std::vector<std::byte> read(options.size), whole;
  while (got < taken * options.size) {
    (void)transport->receive(0, 1, kNow);
    const auto n = far->read(read, host.now() + 100us);
    if (n) whole.insert(whole.end(), read.begin(), read.begin() + static_cast<std::ptrdiff_t>(*n));
    got = whole.size();
  }
  ASSERT_EQ(got, taken * options.size);
  for (std::size_t i = 0; i < taken; ++i) {
    const Bytes one = Bytes(whole).subspan(i * options.size, options.size);
    EXPECT_EQ(read_number(one), i);
    EXPECT_TRUE(pattern_intact(one));
  }
}

// Client and server of tcp_crr on hosts of their own, the server in a thread.
RrResult run_crr(std::uint32_t size, std::uint32_t pairs) {
  Host near = open_host(), far = open_host();
  const BlockOptions options = options_for(Workload::tcp_crr, size, pairs);
  auto end = open_far_end(&far, options, kHere);
  EXPECT_TRUE(end) << describe(end.error());
  std::atomic<bool> done = false;
  std::thread server([&] {
    while (!done) EXPECT_NE((*end)->work(far.now() + 1ms), FarEnd::Turn::failed);
  });
  const RrResult result = CrrClient(near, options, {kHere, (*end)->ports(), {}}).run(0.1);
  done = true;
  server.join();
  EXPECT_GE((*end)->received(), result.completed);
  return result;
}

TEST(ConnectRequestResponse, CompletesTransactionsOfEverySizeAndNumberOfPairs) {
  for (const std::uint32_t pairs : {1u, 4u}) {
    for (const std::uint32_t size : {1u, 100u, 300'000u}) {
      const RrResult result = run_crr(size, pairs);
      EXPECT_FALSE(result.error) << describe(*result.error);
      EXPECT_GT(result.completed, pairs);
      EXPECT_EQ(result.completed + result.in_flight, result.sent) << size << " " << pairs;
      EXPECT_EQ(result.latency.count(), result.completed);
      EXPECT_FALSE(result.wrong());
    }
  }
}

TEST(ConnectRequestResponse, NoticesAReplyThatIsShortLongOrAltered) {
  for (const std::string_view reply : {"", "abc", "abcde", "abcX"}) {
    Host near = open_host(), far = open_host();
    auto listener = far.listen({kHere, 0});
    ASSERT_TRUE(listener);
    const Endpoint at = listener->local();
    std::thread server([&] {
      for (;;) {
        auto client = listener->accept(far.now() + 300ms);
        if (!client) return;
        std::array<std::byte, 4> request;
        (void)client->read(request, far.now() + 1s);
        (void)client->write(bytes_of(reply), More::no, far.now() + 1s);
      }
    });
    const RrResult result =
        CrrClient(near, options_for(Workload::tcp_crr, 4), {kHere, {at.port}, {}}).run(0.02);
    server.join();
    EXPECT_GT(result.corrupted, 0u) << reply;
    EXPECT_EQ(result.completed, 0u) << reply;
    EXPECT_TRUE(result.wrong());
  }
}

TEST(ConnectRequestResponse, SaysThatNobodyListens) {
  Host host = open_host();
  std::uint16_t port = 0;
  {
    const auto gone = host.listen({kHere, 0});
    ASSERT_TRUE(gone);
    port = gone->local().port;
  }
  const RrResult result = CrrClient(host, options_for(Workload::tcp_crr, 1), {kHere, {port}, {}}).run(1);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, ErrorCode::refused);
}

class Services : public ::testing::Test {
 protected:
  void open(TcpServices::Kind kind) {
    std::uint16_t port = 0;
    {
      const auto free = host.listen({kHere, 0});
      ASSERT_TRUE(free);
      port = free->local().port;
    }
    at = {kHere, port};
    const auto opened = services.open(kind, at);
    ASSERT_TRUE(opened) << describe(opened.error());
  }
  TcpSocket connect() {
    auto socket = client_host.connect(at, {.deadline = client_host.now() + 5s});
    EXPECT_TRUE(socket) << describe(socket.error());
    return std::move(*socket);
  }
  void turn() {
    std::array<Event, 8> events;
    const auto n = host.poller().wait(events, host.now() + 200us);
    for (const Event& event : std::span(events).first(n.value_or(0))) services.handle(event);
  }

  Host host = open_host(WaitMode::block), client_host = open_host();
  TcpServices services{host};
  Endpoint at;
};

TEST_F(Services, EchoGivesEverythingBackAlsoToOneThatReadsLate) {
  open(TcpServices::Kind::echo);
  TcpSocket late = connect(), prompt = connect();
  std::vector<std::byte> sent(20 << 20);
  write_pattern(sent);
  std::size_t in = 0;
  // Nothing is read until both directions are full.
  for (int idle = 0; idle < 50;) {
    const auto wrote = late.write(Bytes(sent).subspan(in), More::no, kNow);
    in += wrote.value_or(0);
    idle = wrote ? 0 : idle + 1;
    turn();
  }
  ASSERT_LT(in, sent.size()) << "an echo service that takes without limit";
  // Another is served all the same.
  ASSERT_TRUE(prompt.write(bytes_of("hello")));
  std::array<std::byte, 5> hello;
  Result<std::size_t> got = 0;
  for (int i = 0; i < 1000 && !(got = prompt.read(hello, kNow)); ++i) turn();
  EXPECT_EQ(text_of(hello), "hello");
  std::vector<std::byte> back(1 << 16);
  std::size_t out = 0;
  bool ended = false, same = true;
  while (!ended) {
    if (in < sent.size()) in += late.write(Bytes(sent).subspan(in), More::no, kNow).value_or(0);
    if (in == sent.size()) (void)late.shutdown_write();
    turn();
    const auto n = late.read(back, kNow);
    if (!n) continue;
    same = same && std::equal(back.begin(), back.begin() + static_cast<std::ptrdiff_t>(*n),
                              sent.begin() + static_cast<std::ptrdiff_t>(out));
    out += *n;
    ended = *n == 0;
  }
  EXPECT_EQ(out, sent.size());
  EXPECT_TRUE(same);
}

TEST_F(Services, DiscardTakesEverythingAndSaysNothing) {
  open(TcpServices::Kind::discard);
  TcpSocket socket = connect();
  const std::vector<std::byte> much(1 << 20);
  std::size_t in = 0;
  while (in < much.size()) {
    in += socket.write(Bytes(much).subspan(in), More::no, kNow).value_or(0);
    turn();
  }
  std::array<std::byte, 8> out;
  EXPECT_FALSE(socket.read(out, kNow));
  (void)socket.shutdown_write();
  Result<std::size_t> got = 1;
  for (int i = 0; i < 1000 && !(got = socket.read(out, kNow)); ++i) turn();
  EXPECT_EQ(got.value_or(9), 0u);
  EXPECT_EQ(services.connections(), 0u);
}

TEST_F(Services, AClientThatResetsLeavesNothingBehind) {
  open(TcpServices::Kind::echo);
  for (int i = 0; i < 20; ++i) {
    TcpSocket socket = connect();
    (void)socket.write(bytes_of("x"));
    turn();
    socket.abort();
    turn();
  }
  for (int i = 0; i < 100 && services.connections() != 0; ++i) turn();
  EXPECT_EQ(services.connections(), 0u);
}

TEST_F(Services, ATokenOfNobodyDoesNothing) {
  open(TcpServices::Kind::echo);
  services.handle({TcpServices::kFirstToken + 999, kReadable});
}

}  // namespace
}  // namespace netchannel::bench
