#include "device/pcap_io.hpp"

#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace netchannel::device {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kLastSecond = kForever.ns / kSecond - 1;

// A damaged or forged file can say any time; pcapng has room for 64 bits of it.
Instant instant_of(const timeval& time) {
  const auto seconds = std::clamp<std::int64_t>(time.tv_sec, 0, kLastSecond);
  const auto nanoseconds =
      std::clamp<std::int64_t>(time.tv_usec, 0, kSecond - 1);  // nanoseconds, as we asked
  return Instant{seconds * kSecond + nanoseconds};
}

}  // namespace

void PcapReader::Close::operator()(pcap* file) const { ::pcap_close(file); }
PcapReader::PcapReader(PcapReader&&) noexcept = default;
PcapReader& PcapReader::operator=(PcapReader&&) noexcept = default;
PcapReader::~PcapReader() = default;

Result<PcapReader> PcapReader::open(const std::string& path) {
  std::array<char, PCAP_ERRBUF_SIZE> why{};
  errno = 0;
  pcap* file =
      ::pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, why.data());
  if (file == nullptr) {
    return fail(ErrorCode::invalid_argument, "cannot read the capture file; is it there, and pcap or pcapng?",
                errno);
  }
  PcapReader reader(file);
  if (::pcap_datalink(file) != DLT_EN10MB) {
    return fail(ErrorCode::not_supported, "the capture file does not hold Ethernet frames");
  }
  return reader;
}

std::optional<PcapReader::Captured> PcapReader::next() {
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  const int status = ::pcap_next_ex(file_.get(), &header, &data);
  damaged_ = damaged_ || status == PCAP_ERROR;
  if (status != 1) return std::nullopt;
  last_ = std::max(last_, instant_of(header->ts));
  return Captured{last_, std::as_bytes(std::span(data, header->caplen)), header->caplen < header->len};
}

void PcapWriter::Close::operator()(pcap* file) const { ::pcap_close(file); }
void PcapWriter::Close::operator()(pcap_dumper* file) const { ::pcap_dump_close(file); }
PcapWriter::PcapWriter(std::unique_ptr<pcap, Close> format, pcap_dumper* file)
    : format_(std::move(format)), file_(file) {}
PcapWriter::PcapWriter(PcapWriter&&) noexcept = default;
PcapWriter& PcapWriter::operator=(PcapWriter&&) noexcept = default;
PcapWriter::~PcapWriter() = default;

Result<PcapWriter> PcapWriter::open(const std::string& path) {
  std::unique_ptr<pcap, Close> format(::pcap_open_dead_with_tstamp_precision(
      DLT_EN10MB, static_cast<int>(kMostCaptured), PCAP_TSTAMP_PRECISION_NANO));
  if (!format) return fail(ErrorCode::no_memory, "no memory for a capture file");
  errno = 0;
  pcap_dumper* file = ::pcap_dump_open(format.get(), path.c_str());
  if (file == nullptr)
    return fail(ErrorCode::system, "cannot write the capture file; check its folder", errno);
  return PcapWriter(std::move(format), file);
}

void PcapWriter::write(Instant when, Bytes packet) {
  const std::int64_t ns = std::max<std::int64_t>(when.ns, 0);
  pcap_pkthdr header{};
  header.ts.tv_sec = ns / kSecond;
  header.ts.tv_usec = ns % kSecond;
  header.len = static_cast<bpf_u_int32>(packet.size());
  header.caplen = static_cast<bpf_u_int32>(std::min(packet.size(), kMostCaptured));
  // libpcap's interface is of 1993: the file goes in as bytes, and so do the packet's.
  ::pcap_dump(reinterpret_cast<u_char*>(file_.get()), &header,
              reinterpret_cast<const u_char*>(packet.data()));
}

Result<void> PcapWriter::flush() {
  errno = 0;
  if (::pcap_dump_flush(file_.get()) != 0) {
    return fail(ErrorCode::system, "cannot write the capture file; is the disk full?", errno);
  }
  return {};
}

}  // namespace netchannel::device
