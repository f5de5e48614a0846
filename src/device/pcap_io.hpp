// Packets in capture files, through libpcap: reads pcap and pcapng, writes pcap with nanoseconds. Ethernet
// only. A file is untrusted input: libpcap checks its lengths, and times here are only ever compared and
// clamped.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "netchannel/bytes.hpp"
#include "netchannel/error.hpp"
#include "netchannel/time.hpp"

struct pcap;
struct pcap_dumper;

namespace netchannel::device {

inline constexpr std::size_t kMostCaptured = 262'144;  // bytes of one packet, libpcap's own limit

class PcapReader {
 public:
  // Errors: no file, no capture file, or not of Ethernet frames: invalid_argument, not_supported.
  static Result<PcapReader> open(const std::string& path);
  PcapReader(PcapReader&&) noexcept;
  PcapReader& operator=(PcapReader&&) noexcept;
  ~PcapReader();

  struct Captured {
    Instant when;      // since 1970, as the file says; not before the packet that came before it
    Bytes bytes;       // valid until the next call
    bool cut = false;  // the capture holds only the front of it
  };
  // No value at the end, or where the file is damaged (damage() says so).
  std::optional<Captured> next();
  bool damaged() const { return damaged_; }

 private:
  struct Close {
    void operator()(pcap* file) const;
  };
  explicit PcapReader(pcap* file) : file_(file) {}
  std::unique_ptr<pcap, Close> file_;
  Instant last_;
  bool damaged_ = false;
};

class PcapWriter {
 public:
  // Makes or empties the file. Errors: system.
  static Result<PcapWriter> open(const std::string& path);
  PcapWriter(PcapWriter&&) noexcept;
  PcapWriter& operator=(PcapWriter&&) noexcept;
  ~PcapWriter();

  // `when` counts from 1970 for whoever reads the file; times before that are written as 1970.
  void write(Instant when, Bytes packet);
  // Hands all that was written to the kernel. Errors: system (the disk is full).
  Result<void> flush();

 private:
  struct Close {
    void operator()(pcap* file) const;
    void operator()(pcap_dumper* file) const;
  };
  PcapWriter(std::unique_ptr<pcap, Close> format, pcap_dumper* file);
  std::unique_ptr<pcap, Close> format_;
  std::unique_ptr<pcap_dumper, Close> file_;
};

}  // namespace netchannel::device
