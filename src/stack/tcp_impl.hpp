// What stands behind Tcp (tcp.hpp): the connections in their places, and who is to be asked what after a
// burst.
//
// A place holds a connection from connect() or the end of a handshake until it is closed and nobody owns it.
// An orphan that reaches TIME-WAIT leaves its place for a TimeWaitEntry of a tenth of the size. Numbers in
// the table and in the wheel name either: kTimeWaitBit tells them apart.
#pragma once

#include <optional>
#include <vector>

#include "base/keyed_table.hpp"
#include "proto/icmp.hpp"
#include "proto/tcp/isn.hpp"
#include "proto/tcp/listen.hpp"
#include "proto/tcp/time_wait.hpp"
#include "stack/conn_table.hpp"
#include "stack/egress.hpp"
#include "stack/tcp.hpp"
#include "stack/tcp_egress.hpp"
#include "stack/timer_wheel.hpp"

namespace netchannel::stack {

struct TcpConn {
  TcpConn(tcp::Shared& shared, const Endpoint& mine, const Endpoint& other)
      : c(shared), local(mine), peer(other) {}
  tcp::Connection c;
  Endpoint local, peer;
  TimerLinks timer;
  Instant way_until;                 // the way holds until then, and ...
  std::uint32_t way_generation = 0;  // ... as long as egress is in this generation
  MacAddress mac;
  LeaseId lease = 0;
  std::uint32_t next_waiting = 0;  // in the accept queue
  tcp::Events events = 0;          // not told yet
  std::uint8_t ttl = 64, tos = 0;
  bool owned = true;     // somebody holds a handle, or will get one by accept()
  bool waiting = false;  // in an accept queue
  bool in_table = true;
  bool touched = false;  // to be asked for segments
  bool listed = false;   // in ready
  bool starved = false;  // write() found no frame
  FlowKey flow() const { return {Protocol::tcp, local, peer}; }
};

struct TimeWaitEntry {
  tcp::TimeWait wait;
  Endpoint local, peer;
  TimerLinks timer;
  LeaseId lease = 0;
  std::uint8_t ttl = 64, tos = 0;
  FlowKey flow() const { return {Protocol::tcp, local, peer}; }
};

struct LeaseUse {
  std::uint32_t count = 0;
  Instant rests_until;
};

struct TcpListenerState {
  TcpListenerState(const TcpListen& wanted, const tcp::ListenOptions& options, CounterPage& counters)
      : given(wanted), handshakes(options, counters) {}
  TcpListen given;
  tcp::Listener handshakes;
  std::uint32_t first = 0, last = 0, count = 0;  // accept queue: places + 1, 0: none
  bool listed = false;
};

// What the ingress knows of a segment besides its bytes.
struct TcpArrival {
  Endpoint peer, local;
  tcp::Ecn ecn = tcp::Ecn::not_ect;
  MacAddress station{};  // which it comes from
};

struct Tcp::Impl {
  explicit Impl(World& owner);

  // `view` is of the packet that `frame` is.
  void on_segment(const TcpArrival& arrival, const wire::TcpView& view, Frame&& frame);
  // False: no connection of ours has that flow.
  bool on_icmp(const proto::IcmpError& error);
  // The neighbour that a segment waited for does not answer.
  void on_unreachable(TcpHandle connection);
  // Local devices: the station that peers were on is no more.
  void on_station_gone(const MacAddress& station);
  void run_timers();
  Instant next_deadline() const;
  // Asks the touched for their segments, as far as there is room. True: some are left.
  bool serve();
  bool has_work() const { return !touched.empty(); }

  TcpConn* get(TcpHandle handle);
  TcpConn* owned(TcpHandle handle) {
    TcpConn* conn = get(handle);
    return conn != nullptr && conn->owned ? conn : nullptr;
  }
  TcpListenerState* get(TcpListenerHandle handle);
  TcpHandle handle_of(std::uint32_t place) const { return {place + 1, places[place].generation}; }
  std::uint32_t find(const FlowKey& flow) const;
  bool is_free(const FlowKey& flow) const;
  void make_room_on_the_ring(Frame& frame);
  Frame cut_beyond_reach(Frame& frame);
  std::optional<std::uint32_t> take_place(const FlowKey& flow, LeaseId lease);
  void release(std::uint32_t place);
  void leave_table(std::uint32_t place);
  void touch(std::uint32_t place);
  void note(std::uint32_t place, tcp::Events events);
  void settle(std::uint32_t place);
  void enter_time_wait(std::uint32_t place);
  void end_time_wait(std::uint32_t number);
  void on_time_wait_segment(std::uint32_t number, const TcpArrival& arrival, const tcp::SegmentIn& segment);
  void on_no_connection(const TcpArrival& arrival, const tcp::SegmentIn& segment,
                        std::optional<tcp::Seq> after);
  void accept(TcpListenerState& listener, std::uint32_t number, const TcpArrival& arrival,
              const tcp::ListenResult& result, const tcp::SegmentIn& segment);
  std::uint32_t listener_of(const Endpoint& local) const;
  void reply(const FlowKey& flow, std::uint8_t ttl, std::uint8_t tos, const tcp::SegmentOut& segment,
             TcpHandle connection = {});
  bool find_way(std::uint32_t place);
  bool serve_one(std::uint32_t place);
  void arm(std::uint32_t place);
  void retry_handshakes();
  std::uint16_t path_mss(const IpAddress& peer) const;
  std::uint32_t frames_for(const TcpConn& conn) const;
  bool out_of_frames() const;
  void make_room_for_writers();
  void starve(std::uint32_t place);
  void wake_starved();
  Result<Endpoint> choose_local(const TcpConnect& options) const;
  void use(LeaseId lease);
  void unuse(LeaseId lease);
  void rest(const TcpConn& conn);

  // Places and TIME-WAITs live in slabs, which cost resident memory only where they were used.
  struct Place {
    std::optional<TcpConn> conn;
    std::uint32_t generation = 1;
  };
  static constexpr std::uint32_t kReservedShare = 8;  // of the frames one in so many is nobody's to write to
  static constexpr std::uint32_t kTimeWaitBit = 0x8000'0000;
  struct LinksOf {
    Impl* tcp;
    TimerLinks& operator()(std::uint32_t number) const {
      return (number & kTimeWaitBit) != 0 ? tcp->waits[number & ~kTimeWaitBit].timer
                                          : tcp->places[number].conn->timer;
    }
  };

  World& world;
  TcpLimits limits;
  tcp::Secrets secrets;
  SipKey listener_key, port_key;
  tcp::Shared shared;
  tcp::Slab<Place> places;
  tcp::Slab<TimeWaitEntry> waits;
  ConnTable table;
  TimerWheel<LinksOf> wheel;
  TcpEgress egress;
  tcp::TxBatch batch;  // of serve_one(): to clear it costs less than to make one
  proto::TokenBucket reset_budget;
  KeyedTable<FlowKey, std::uint32_t> listening;  // wildcard flow -> number + 1
  std::vector<std::unique_ptr<TcpListenerState>> listeners;
  Instant listeners_at = kForever;  // the earliest of their deadlines
  std::vector<std::uint32_t> touched, serving, starved;
  std::size_t starved_turn = 0;  // whose turn in `starved` it is
  bool needy = false;            // somebody who could send has found no frame ...
  Instant make_room_at{};        // ... which is looked into at this time
  std::vector<TcpReady> ready;
  std::vector<LeaseUse> leases;
  mutable std::uint64_t ports_chosen = 0;
};

}  // namespace netchannel::stack
