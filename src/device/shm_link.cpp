#include "device/shm_link.hpp"

#include <utility>

namespace netchannel::device {
namespace {

// The connector's writes go first in memory.
struct Parts {
  MutableBytes there, back, home_to_connector, home_to_acceptor;
};

Parts parts_of(MutableBytes memory) {
  const auto carve = [&](std::size_t size) {
    return std::exchange(memory, memory.subspan(size)).first(size);
  };
  Parts parts;
  parts.there = carve(kCellRingSize);
  parts.back = carve(kCellRingSize);
  parts.home_to_connector = carve(kSlotRingSize);
  parts.home_to_acceptor = carve(kSlotRingSize);
  return parts;
}

}  // namespace

Result<LinkMemory> make_link_memory() {
  auto fd = open_memfd("netchannel-link", kLinkMemory);
  if (!fd) return tl::unexpected(fd.error());
  LinkMemory made;
  made.fd.reset(*fd);
  auto mapping = Mapping::of_fd(*fd, kLinkMemory);
  if (!mapping) return tl::unexpected(mapping.error());
  made.mapping = std::move(*mapping);
  return made;
}

LinkEnd::LinkEnd(Mapping given, LinkRole role, UniqueFd bell_end)
    : memory(std::move(given)), bell(std::move(bell_end)) {
  const Parts parts = parts_of(memory.bytes());
  const bool connector = role == LinkRole::connector;
  out = CellWriter(connector ? parts.there : parts.back);
  in = CellReader(connector ? parts.back : parts.there);
  give_home = {connector ? parts.home_to_acceptor : parts.home_to_connector, kMostShownSlots};
  came_home = {connector ? parts.home_to_connector : parts.home_to_acceptor, kMostShownSlots};
}

}  // namespace netchannel::device
