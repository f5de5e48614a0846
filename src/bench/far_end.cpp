#include "bench/far_end.hpp"

#include "bench/byte_check.hpp"
#include "bench/crr_server.hpp"
#include "bench/histogram.hpp"
#include "bench/histogram_json.hpp"
#include "bench/message.hpp"
#include "bench/raw_transport.hpp"
#include "bench/tcp_transport.hpp"
#include "bench/udp_transport.hpp"
#include "device/clock.hpp"

namespace netchannel::bench {
namespace {

constexpr std::size_t kReceiveBatch = 64;

// All that stand over a transport.
class OverTransport : public FarEnd {
 public:
  explicit OverTransport(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}
  std::uint64_t received() const override { return 0; }
  std::uint64_t syscalls() const override { return transport_->syscalls(); }
  std::vector<std::uint16_t> ports() const override { return transport_->ports(); }
  MacAddress mac() const override { return transport_->mac(); }
  std::string mode() const override { return transport_->mode(); }
  std::vector<std::string> explain() const override { return transport_->explain(); }

  Turn work(Instant deadline) override {
    const auto arrived = transport_->receive(kAnyPort, kReceiveBatch, deadline);
    if (!arrived) {
      // An ICMP error of a client that has closed its port: the control connection will say the same.
      const ErrorCode code = arrived.error().code;
      return code == ErrorCode::refused || code == ErrorCode::unreachable ? Turn::idle : Turn::failed;
    }
    if (arrived->empty()) return Turn::idle;
    take(*arrived);
    return Turn::worked;
  }

 protected:
  virtual void take(std::span<const Arrived> arrived) = 0;
  Transport& transport() { return *transport_; }

 private:
  std::unique_ptr<Transport> transport_;
};

class Echo final : public OverTransport {
 public:
  using OverTransport::OverTransport;
  void start() override {
    while (work(Instant{}) == Turn::worked) {
    }
    replied_ = 0;
  }
  Json report() const override { return {{"replied", replied_}}; }

 private:
  void take(std::span<const Arrived>) override { replied_ += transport().send_back(); }
  std::uint64_t replied_ = 0;
};

class DatagramSink final : public OverTransport {
 public:
  DatagramSink(std::unique_ptr<Transport> transport, const BlockOptions& block)
      : OverTransport(std::move(transport)), check_(block.size, block.flows * block.pairs) {}
  void start() override {
    while (work(Instant{}) == Turn::worked) {
    }
    check_.reset();
    latency_.clear();
  }
  std::uint64_t received() const override { return check_.counts().received; }
  Json report() const override {
    return {{"counts", to_json(check_.counts())}, {"latency", to_json(latency_)}};
  }

 private:
  void take(std::span<const Arrived> arrived) override {
    const Instant now = device::monotonic_now();
    for (const Arrived& message : arrived) {
      if (!check_.see(message.payload, message.peer_port)) continue;
      if (const std::int64_t stamp = read_stamp(message.payload); stamp != 0) latency_.record(now.ns - stamp);
    }
  }
  StreamCheck check_;
  Histogram latency_;  // stamp to arrival; meaningful only on one machine
};

// The window in which bytes were received is the receiver's own: full buffers between the two ends are filled
// in the sender's time and emptied after it.
class ByteSink final : public OverTransport {
 public:
  ByteSink(std::unique_ptr<Transport> transport, const BlockOptions& block)
      : OverTransport(std::move(transport)), check_(block.size, std::size_t{block.flows} * block.pairs) {}
  void start() override {
    while (work(Instant{}) == Turn::worked) {
    }
    check_.reset();
    first_ = last_ = {};
  }
  std::uint64_t received() const override { return check_.received(); }
  Json report() const override {
    StreamCounts counts;
    counts.received = check_.received();
    counts.corrupted = check_.corrupted();
    return {{"counts", to_json(counts)}, {"seconds", static_cast<double>((last_ - first_).count()) * 1e-9}};
  }

 private:
  void take(std::span<const Arrived> arrived) override {
    for (const Arrived& bytes : arrived) check_.see(bytes.port, bytes.payload);
    last_ = device::monotonic_now();
    if (first_ == Instant{}) first_ = last_;
  }
  ByteCheck check_;
  Instant first_, last_;
};

Result<std::unique_ptr<Transport>> open_transport(Host* host, const BlockOptions& block,
                                                  const IpAddress& address) {
  if (block.lane.raw) return RawTransport::open(block, address, block.pairs);
  if (is_tcp(block.workload)) return TcpTransport::server(*host, block, address);
  return UdpTransport::open_server(*host, block, address);
}

}  // namespace

Result<std::unique_ptr<FarEnd>> open_far_end(Host* host, const BlockOptions& block,
                                             const IpAddress& address) {
  if (block.workload == Workload::tcp_crr) return CrrServer::open(*host, block, address);
  auto transport = open_transport(host, block, address);
  if (!transport) return tl::unexpected(transport.error());
  switch (block.workload) {
    case Workload::udp_stream:
      return std::make_unique<DatagramSink>(std::move(*transport), block);
    case Workload::tcp_stream:
      return std::make_unique<ByteSink>(std::move(*transport), block);
    default:
      return std::make_unique<Echo>(std::move(*transport));
  }
}

}  // namespace netchannel::bench
