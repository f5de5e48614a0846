// What the wire room costs a packet: parsing and emitting whole headers, naming a frame's flow, and summing
// bytes.
#include <benchmark/benchmark.h>

#include <vector>

#include "netchannel/wire/ethernet.hpp"
#include "netchannel/wire/packet.hpp"
#include "netchannel/wire/tcp.hpp"
#include "netchannel/wire/udp.hpp"

namespace netchannel::wire {
namespace {

constexpr MacAddress kOurMac{{2, 0, 0, 0, 0, 1}}, kPeerMac{{2, 0, 0, 0, 0, 2}};
constexpr std::size_t kPayload = 64;

struct Flow {
  IpAddress local, peer;
};
Flow flow(bool six) {
  if (!six) return {IpAddress::v4(10, 9, 0, 1), IpAddress::v4(10, 9, 0, 2)};
  return {IpAddress::v6({0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}),
          IpAddress::v6({0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2})};
}

void emit_ethernet_ip(MutableBytes out, bool six, Protocol protocol, std::size_t l4_size) {
  const Flow ends = flow(six);
  EthernetRepr{kOurMac, kPeerMac, six ? EtherType::ipv6 : EtherType::ipv4, {}}.emit(out);
  const MutableBytes l3 = out.subspan(kEthernetHeaderSize);
  const auto length = static_cast<std::uint16_t>(l4_size);
  if (six) {
    Ipv6Repr{.source = ends.peer,
             .destination = ends.local,
             .next_header = static_cast<std::uint8_t>(protocol),
             .payload_length = length}
        .emit(l3);
  } else {
    Ipv4Repr{.source = ends.peer, .destination = ends.local, .protocol = protocol, .payload_length = length}
        .emit(l3);
  }
}

constexpr std::size_t l4_offset(bool six) {
  return kEthernetHeaderSize + (six ? kIpv6HeaderSize : kIpv4MinHeaderSize);
}

void emit_udp(MutableBytes out, bool six, PartialSum payload_sum) {
  const Flow ends = flow(six);
  const UdpRepr udp{40000, 7000, static_cast<std::uint16_t>(kPayload)};
  emit_ethernet_ip(out, six, Protocol::udp, udp.datagram_size());
  PartialSum rest = pseudo_header(ends.peer, ends.local, Protocol::udp, udp.datagram_size());
  rest.add(payload_sum);
  udp.emit(out.subspan(l4_offset(six)), rest);
}

std::vector<std::byte> udp_frame(bool six) {
  std::vector<std::byte> frame(l4_offset(six) + kUdpHeaderSize + kPayload, std::byte{0x5a});
  emit_udp(frame, six, checksum_fast(Bytes(frame).last(kPayload)));
  return frame;
}

std::vector<std::byte> tcp_frame() {
  std::vector<std::byte> frame(l4_offset(false) + 32 + kPayload, std::byte{0x5a});
  emit_ethernet_ip(frame, false, Protocol::tcp, 32 + kPayload);
  TcpRepr tcp{.source_port = 40000, .destination_port = 7000, .flags = {TcpFlags::kAck}};
  tcp.options.timestamps = TcpTimestamps{1, 2};
  tcp.emit(MutableBytes(frame).subspan(l4_offset(false)));
  return frame;
}

void EmitUdp(benchmark::State& state) {
  const bool six = state.range(0) == 6;
  auto frame = udp_frame(six);
  for (auto _ : state) {
    emit_udp(frame, six, PartialSum{0x1234});
    benchmark::DoNotOptimize(frame.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(EmitUdp)->Arg(4)->Arg(6);

void ParseUdp(benchmark::State& state) {
  const auto frame = udp_frame(state.range(0) == 6);
  for (auto _ : state) {
    Bytes bytes = frame;
    benchmark::DoNotOptimize(bytes);
    const auto ethernet = EthernetView::parse(bytes);
    const auto packet = parse_ip(ethernet->payload());
    const auto udp = UdpView::parse(packet->payload);
    benchmark::DoNotOptimize(udp->destination_port());
    benchmark::DoNotOptimize(packet->source);
  }
}
BENCHMARK(ParseUdp)->Arg(4)->Arg(6);

void ParseAndVerifyUdp(benchmark::State& state) {
  const auto frame = udp_frame(state.range(0) == 6);
  for (auto _ : state) {
    Bytes bytes = frame;
    benchmark::DoNotOptimize(bytes);
    const auto ethernet = EthernetView::parse(bytes);
    const auto packet = parse_ip(ethernet->payload());
    const auto udp = UdpView::parse(packet->payload);
    bool good = verify_header_checksum(*packet) && check_checksum(*udp, packet->source, packet->destination);
    benchmark::DoNotOptimize(good);
  }
}
BENCHMARK(ParseAndVerifyUdp)->Arg(4)->Arg(6);

void ParseTcpWithTimestamps(benchmark::State& state) {
  const auto frame = tcp_frame();
  for (auto _ : state) {
    Bytes bytes = frame;
    benchmark::DoNotOptimize(bytes);
    const auto ethernet = EthernetView::parse(bytes);
    const auto packet = parse_ip(ethernet->payload());
    const auto tcp = TcpView::parse(packet->payload);
    auto options = parse_options(*tcp);
    benchmark::DoNotOptimize(options);
  }
}
BENCHMARK(ParseTcpWithTimestamps);

void FlowOf(benchmark::State& state) {
  const auto frame = udp_frame(state.range(0) == 6);
  for (auto _ : state) {
    Bytes bytes = frame;
    benchmark::DoNotOptimize(bytes);
    auto info = flow_of(bytes);
    benchmark::DoNotOptimize(info);
  }
}
BENCHMARK(FlowOf)->Arg(4)->Arg(6);

void ChecksumScalar(benchmark::State& state) {
  const std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)), std::byte{0x5a});
  for (auto _ : state) {
    Bytes from = bytes;
    benchmark::DoNotOptimize(from);
    benchmark::DoNotOptimize(checksum_scalar(from));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(ChecksumScalar)->Arg(64)->Arg(1500)->Arg(65536);

void ChecksumFast(benchmark::State& state) {
  const std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)), std::byte{0x5a});
  for (auto _ : state) {
    Bytes from = bytes;
    benchmark::DoNotOptimize(from);
    benchmark::DoNotOptimize(checksum_fast(from));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(ChecksumFast)->Arg(64)->Arg(1500)->Arg(65536);

void CopyAndChecksum(benchmark::State& state) {
  const std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)), std::byte{0x5a});
  std::vector<std::byte> to(bytes.size());
  for (auto _ : state) {
    benchmark::DoNotOptimize(copy_and_checksum(to, bytes));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(CopyAndChecksum)->Arg(64)->Arg(1500)->Arg(65536);

// What copying alone costs, to compare.
void CopyAlone(benchmark::State& state) {
  const std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)), std::byte{0x5a});
  std::vector<std::byte> to(bytes.size());
  for (auto _ : state) {
    std::copy(bytes.begin(), bytes.end(), to.begin());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(CopyAlone)->Arg(64)->Arg(1500)->Arg(65536);

}  // namespace
}  // namespace netchannel::wire
