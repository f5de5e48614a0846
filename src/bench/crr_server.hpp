// The answering side of tcp_crr: listens once; of each connection reads one request, sends it back, and
// closes. With one pair it waits in each call, as a plain server does that serves one client after the other;
// with several each connection goes forward as far as it can, in turn.
#pragma once

#include <list>
#include <optional>

#include "bench/far_end.hpp"

namespace netchannel::bench {

class CrrServer final : public FarEnd {
 public:
  // Errors: as Host::listen.
  static Result<std::unique_ptr<FarEnd>> open(Host& host, const BlockOptions& options, const IpAddress& near);

  Turn work(Instant deadline) override;
  void start() override { served_ = 0; }
  std::uint64_t received() const override { return served_; }
  Json report() const override { return {{"replied", served_}}; }
  std::uint64_t syscalls() const override { return host_.syscalls(); }
  std::vector<std::uint16_t> ports() const override {
    return std::vector<std::uint16_t>(options_.pairs, listener_.local().port);
  }
  std::string mode() const override { return host_.mode(); }
  std::vector<std::string> explain() const override { return host_.explain(); }

 private:
  struct Client {
    TcpSocket socket;
    std::vector<std::byte> request;
    std::size_t read = 0;
    std::size_t written = 0;
  };
  CrrServer(Host& host, const BlockOptions& options, TcpListener listener);
  Turn accept(Instant deadline);
  bool go_on(Client& client, Instant deadline);

  Host& host_;
  BlockOptions options_;
  bool patient_;
  TcpListener listener_;
  std::list<Client> clients_;
  std::uint64_t served_ = 0;
};

}  // namespace netchannel::bench
