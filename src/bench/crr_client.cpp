#include "bench/crr_client.hpp"

#include <algorithm>

#include "bench/message.hpp"
#include "bench/ready_ports.hpp"
#include "bench/signals.hpp"
#include "bench/tcp_transport.hpp"
#include "device/clock.hpp"

namespace netchannel::bench {
namespace {

constexpr Duration kStepTime = std::chrono::milliseconds(20);  // a wait after which the clock is looked at
constexpr Duration kLastTime = std::chrono::seconds(1);        // for what is under way at the end

}  // namespace

CrrClient::CrrClient(Host& host, const BlockOptions& options, const Far& far)
    : host_(host), options_(options), patient_(waits_without_deadline(host, options)) {
  for (std::size_t i = 0; i < std::min<std::size_t>(options.pairs, far.ports.size()); ++i) {
    Flow flow{.peer = {far.address, far.ports[i]}};
    flow.request.resize(options.size);
    flow.reply.resize(options.size + 1);  // one more than there is: a longer reply is wrong
    write_pattern(flow.request);
    flows_.push_back(std::move(flow));
  }
}

RrResult CrrClient::run(double seconds) {
  result_ = {};
  beginning_ = true;
  const Instant start = device::monotonic_now();
  const Instant end = start + Duration(static_cast<std::int64_t>(seconds * 1e9));
  Instant now = start;
  while (!interrupted() && !result_.error && now < end + kLastTime) {
    beginning_ = now < end;
    const auto under_way = [](const Flow& flow) { return flow.state != State::idle; };
    if (!beginning_ && std::none_of(flows_.begin(), flows_.end(), under_way)) break;
    const bool alone = flows_.size() == 1;
    bool moved = false;
    for (Flow& flow : flows_) moved |= step(flow, alone ? now + kStepTime : kNow);
    if (!moved && !alone && !host_.poll()) host_.wait(now + kStepTime);
    now = device::monotonic_now();
  }
  result_.seconds = static_cast<double>((now - start).count()) * 1e-9;
  for (Flow& flow : flows_) {
    if (flow.state == State::idle) continue;
    ++result_.in_flight;
    flow.socket.reset();
    flow.state = State::idle;
  }
  return result_;
}

// One move; false if nothing could be done.
bool CrrClient::step(Flow& flow, Instant deadline) {
  if (patient_ && deadline != kNow) deadline = kForever;
  const State before = flow.state;
  const std::size_t done = flow.done;
  switch (flow.state) {
    case State::idle:
      if (beginning_) begin(flow, deadline);
      break;
    case State::connecting:
      if (const auto connected = flow.socket->finish_connect(deadline);
          connected || !went_on(connected.error()))
        flow.state = State::asking;
      break;
    case State::asking:
      ask(flow, deadline);
      break;
    case State::waiting:
      read(flow, deadline);
      break;
  }
  return flow.state != before || flow.done != done;
}

// The call may be tried again. What else ends a connection ends the run.
bool CrrClient::went_on(const Error& error) {
  if (is_pause(error)) return true;
  result_.error = error;
  return false;
}

void CrrClient::begin(Flow& flow, Instant deadline) {
  flow.started = device::monotonic_now();
  auto socket = host_.connect(flow.peer, {.deadline = deadline});
  if (!socket) return (void)went_on(socket.error());
  flow.socket.emplace(std::move(*socket));
  flow.state = deadline == kNow ? State::connecting : State::asking;
  flow.done = 0;
  write_message(flow.request, next_number_++, flow.started.ns);
  ++result_.sent;
}

void CrrClient::ask(Flow& flow, Instant deadline) {
  const auto wrote = flow.socket->write(Bytes(flow.request).subspan(flow.done), More::no, deadline);
  if (!wrote) return (void)went_on(wrote.error());
  flow.done += *wrote;
  if (flow.done < flow.request.size()) return;
  flow.done = 0;
  flow.state = State::waiting;
}

void CrrClient::read(Flow& flow, Instant deadline) {
  const auto got = flow.socket->read(MutableBytes(flow.reply).subspan(flow.done), deadline);
  if (!got) return (void)went_on(got.error());
  flow.done += *got;
  if (*got == 0 || flow.done == flow.reply.size()) end(flow);
}

void CrrClient::end(Flow& flow) {
  flow.socket.reset();
  flow.state = State::idle;
  const Bytes reply = Bytes(flow.reply).first(flow.done);
  if (!std::equal(reply.begin(), reply.end(), flow.request.begin(), flow.request.end())) {
    ++result_.corrupted;
    return;
  }
  ++result_.completed;
  result_.latency.record((device::monotonic_now() - flow.started).count());
}

}  // namespace netchannel::bench
