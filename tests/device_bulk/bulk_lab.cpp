#include "bulk_lab.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace netchannel::device {

using Clock = std::chrono::steady_clock;

Result<std::unique_ptr<BulkDevice>> BulkLab::try_open(const BulkOptions& options, DeviceHome home) {
  BulkOptions named = options;
  if (named.interface.empty()) named.interface = "eth0";
  return BulkDevice::open(named, home);
}

BulkLab::Opened BulkLab::open(const BulkOptions& options) {
  Opened opened;
  opened.port = std::make_unique<testkit::Port>(
      testkit::PortOptions{.slot_size = BulkDevice::kSlotSize, .rx_slots = 64, .tx_slots = 64});
  auto device = try_open(options, opened.port->home());
  if (!device) {
    ADD_FAILURE() << "the device does not open: " << describe(device.error());
    return opened;
  }
  opened.device = std::move(*device);
  opened.port->attach(*opened.device);
  return opened;
}

std::vector<Received> BulkLab::receive_all(Opened& opened, std::size_t most,
                                           std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  std::vector<Received> got;
  while (got.size() < most) {
    for (auto& packet : opened.port->receive_all()) got.push_back(std::move(packet));
    if (got.size() >= most) break;
    if (opened->prepare_sleep() && !testkit::wait_readable(opened->info().sleep_fd, until)) break;
    if (Clock::now() > until) break;
  }
  return got;
}

std::vector<Packet> BulkLab::receive(Opened& opened, std::size_t most, std::chrono::milliseconds patience) {
  std::vector<Packet> out;
  for (auto& received : receive_all(opened, most, patience)) out.push_back(std::move(received.bytes));
  return out;
}

bool BulkLab::stays_silent(Opened& opened) {
  return receive(opened, 1, std::chrono::milliseconds(30)).empty();
}

KernelSocket BulkLab::peer_socket(const Endpoint& local) {
  std::optional<KernelSocket> socket;
  in_b([&] { socket.emplace(KernelSocket::udp(local)); });
  return std::move(*socket);
}

std::size_t l4_offset(Bytes frame) { return load_be16(frame, 12) == testkit::kIpv6 ? 54 : 34; }

std::uint16_t pseudo_sum(Bytes frame) {
  const std::size_t at = l4_offset(frame);
  const bool v6 = at == 54;
  const Bytes addresses = v6 ? frame.subspan(22, 32) : frame.subspan(26, 8);
  Packet pseudo(addresses.begin(), addresses.end());
  const std::size_t tail = pseudo.size();
  pseudo.resize(tail + 8);
  store_be32(pseudo, tail, static_cast<std::uint32_t>(frame.size() - at));
  store_be32(pseudo, tail + 4, load_u8(frame, v6 ? 20 : 23));
  return static_cast<std::uint16_t>(~testkit::internet_checksum(pseudo));
}

Outgoing partial(const Packet& frame, std::uint16_t segment_size) {
  Outgoing out{.frame = frame, .meta = {}};
  const std::size_t at = l4_offset(frame);
  const bool udp = load_u8(frame, at == 54 ? 20 : 23) == IPPROTO_UDP;
  store_be16(out.frame, at + (udp ? 6 : 16), pseudo_sum(frame));
  out.meta.segment_size = segment_size;
  out.meta.flags = kChecksumPartial;
  out.meta.l4_offset = static_cast<std::uint16_t>(at);
  return out;
}

void segment(const KernelSocket& socket, int size) {
  EXPECT_EQ(::setsockopt(socket.fd(), IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size), 0)
      << std::strerror(errno);
}

}  // namespace netchannel::device
