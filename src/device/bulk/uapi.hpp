// What the kernel understands and the headers of Debian 12 (Linux 6.1) do not name yet, or not in a form that
// C++ reads (linux/virtio_net.h), in this one place. Each value is part of the kernel's stable interface; a
// kernel that lacks the feature refuses it.
#pragma once

#include <linux/bpf.h>
#include <linux/if_tun.h>

#include <cstdint>

namespace netchannel::device::uapi {

// Virtio 1.2, section 5.1.6. A TAP's fields are in the machine's byte order unless it is told otherwise.
struct VirtioNetHeader {
  std::uint8_t flags = 0;
  std::uint8_t gso_type = 0;
  std::uint16_t hdr_len = 0;
  std::uint16_t gso_size = 0;
  std::uint16_t csum_start = 0;
  std::uint16_t csum_offset = 0;
  std::uint16_t num_buffers = 0;
};
// flags
inline constexpr std::uint8_t kNeedsChecksum = 1;
inline constexpr std::uint8_t kDataValid = 2;
// gso_type
inline constexpr std::uint8_t kGsoNone = 0;
inline constexpr std::uint8_t kGsoTcp4 = 1;
inline constexpr std::uint8_t kGsoTcp6 = 4;
inline constexpr std::uint8_t kGsoUdpL4 = 5;  // a TAP's since Linux 6.2
inline constexpr std::uint8_t kGsoEcn = 0x80;

// Linux 6.2: TUNSETOFFLOAD.
inline constexpr unsigned kTunUso4 = 0x20;
inline constexpr unsigned kTunUso6 = 0x40;

// Linux 6.6: tcx, the tc hooks with bpf_links.
inline constexpr auto kTcxIngress = static_cast<bpf_attach_type>(46);
inline constexpr std::uint32_t kBefore = 1U << 3;  // at the hook's head

}  // namespace netchannel::device::uapi
