// A virtio-net header and a frame, arbitrary ones. What is believed of a received frame lies within it; what
// is said about a frame that is sent is believed when it comes back.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "device/bulk/vnet_header.hpp"

using namespace netchannel;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void received(Bytes header, Bytes frame) {
  const auto said = device::parse_vnet_header(header, frame);
  if (!said) {
    require(said.error() == DropReason::device_bad_vnet_header);
    return;
  }
  const bool partial = (said->flags & kChecksumPartial) != 0;
  if (partial || said->segment_size != 0) {
    // A transport header, with its checksum field, is there.
    require(said->l4_offset >= 34 && said->l4_offset + 8u <= frame.size());
    require(frame.size() - said->l4_offset > said->segment_size);
  } else if (said->l4_offset != 0) {
    require(said->l4_offset + 8u <= frame.size());
  }
}

void sent(const device::FrameOffload& offload, Bytes frame, std::uint32_t mtu) {
  const auto header =
      device::make_vnet_header({.front = frame, .bytes = frame.size(), .offload = offload}, mtu);
  if (!header) {
    require(header.error() == DropReason::device_bad_descriptor ||
            header.error() == DropReason::device_frame_too_large);
    return;
  }
  const auto back = device::parse_vnet_header(*header, frame);
  require(back.has_value());
  require((back->flags & kChecksumPartial) == (offload.flags & kChecksumPartial));
  if (back->segment_size == 0) {
    require(frame.size() <= mtu + 14u);
  } else {
    require(back->segment_size == offload.segment_size && back->l4_offset == offload.l4_offset);
    require(back->segment_size < mtu);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes all = std::as_bytes(std::span(data, size));
  const Bytes header = all.first(std::min(size, device::kVnetHeaderSize));
  const Bytes frame = all.subspan(header.size());
  received(header, frame);
  if (header.size() < device::kVnetHeaderSize) return 0;
  // The same bytes as a descriptor's words.
  const device::FrameOffload offload{
      .flags = load_be16(header, 0), .segment_size = load_be16(header, 2), .l4_offset = load_be16(header, 4)};
  sent(offload, frame, load_be16(header, 6));
  return 0;
}
