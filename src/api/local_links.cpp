#include "api/local_links.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>

#include "control/route_to.hpp"

namespace netchannel {
namespace {

using rendezvous::Hello;
using rendezvous::Welcome;

constexpr std::size_t kMostSentences = 16;
constexpr std::size_t kMostRemembered = 4096;
// How long an answer of the kernel's, or of nobody, holds.
constexpr Duration kAddressHolds = std::chrono::seconds(1);
constexpr Duration kAbsenceHolds = std::chrono::milliseconds(200);

constexpr std::uint32_t kMostSlotSize = 1 << 20;

bool is_sane(std::uint32_t slots, std::uint32_t slot_size) {
  return slots != 0 && slots <= device::kMostShownSlots && std::has_single_bit(slot_size) &&
         slot_size >= 4096 && slot_size <= kMostSlotSize;
}

Result<device::PeerFrames> map_frames(int fd, std::uint32_t slots, std::uint32_t slot_size) {
  auto mapping = Mapping::of_stranger(fd, std::size_t{slots} * slot_size, Mapping::Access::read);
  if (!mapping) return tl::unexpected(mapping.error());
  return device::PeerFrames{std::move(*mapping), slots, slot_size};
}

}  // namespace

Result<std::unique_ptr<LocalLinks>> LocalLinks::open(const Parts& parts) {
  std::unique_ptr<LocalLinks> links(new LocalLinks(parts));
  links->epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!links->epoll_)
    return fail(ErrorCode::system, "cannot make an epoll instance; raise the limit of open files", errno);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = parts.device.info().sleep_fd;
  if (::epoll_ctl(links->epoll_.get(), EPOLL_CTL_ADD, event.data.fd, &event) != 0)
    return fail(ErrorCode::system, "cannot watch the links", errno);
  return links;
}

void LocalLinks::say(std::string sentence) {
  auto& said = parts_.explain;
  if (said.size() < kMostSentences && std::find(said.begin(), said.end(), sentence) == said.end())
    said.push_back(std::move(sentence));
}

bool LocalLinks::await(int fd, Waiting waiting) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.fd = fd;
  ++calls_;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return false;
  waiting_[fd] = std::move(waiting);
  return true;
}

void LocalLinks::leave(int fd) {
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  waiting_.erase(fd);
}

// --- names ---

void LocalLinks::offer(Protocol protocol, const Endpoint& local, bool v6_only) {
  const std::string name = rendezvous::name_of(protocol, local, v6_only);
  auto fd = rendezvous::listen(name);
  const int number = fd ? fd->get() : -1;
  if (fd && await(number, {Awaited::visitor, std::move(*fd), {}, name})) {
    offers_[name] = number;
    return;
  }
  say("port " + std::to_string(local.port) +
      " is reached through the kernel only: " + (fd ? "cannot watch its name" : describe(fd.error())));
}

void LocalLinks::withdraw(Protocol protocol, const Endpoint& local, bool v6_only) {
  const auto offered = offers_.find(rendezvous::name_of(protocol, local, v6_only));
  if (offered == offers_.end()) return;
  leave(offered->second);
  offers_.erase(offered);
}

// --- going out ---

bool LocalLinks::is_of_this_machine(const IpAddress& address, Instant now) {
  if (address.is_loopback()) return true;
  if (address.is_multicast() || address.is_unspecified()) return false;
  if (const auto known = addresses_.find(address); known != addresses_.end() && now < known->second.until)
    return known->second.ours;
  if (addresses_.size() >= kMostRemembered) addresses_.clear();
  const auto route = control::interface_for(address);
  const bool ours = route && route->local;
  addresses_[address] = {ours, now + kAddressHolds};
  return ours;
}

bool LocalLinks::reach_soon(Protocol protocol, const Endpoint& peer, Instant now) {
  if (parts_.stack.local_peer(protocol, peer)) return true;
  const auto absent = not_here_.find({protocol, peer});
  if (absent != not_here_.end() && now < absent->second) return false;
  if (reach(protocol, peer, now)) return true;
  if (not_here_.size() >= kMostRemembered) not_here_.clear();
  not_here_[{protocol, peer}] = now + kAbsenceHolds;
  return false;
}

bool LocalLinks::reach(Protocol protocol, const Endpoint& peer, Instant now) {
  if (parts_.stack.local_peer(protocol, peer)) return true;
  if (!is_of_this_machine(peer.address, now)) return false;
  return connect(protocol, peer);
}

void LocalLinks::forget(Protocol protocol, const Endpoint& peer) {
  parts_.stack.forget_local_peer(protocol, peer);
}

bool LocalLinks::connect(Protocol protocol, const Endpoint& peer) {
  const auto kernel = [&](const std::string& why) {
    say(peer.to_string() + " is reached through the kernel: " + why);
    return false;
  };
  const auto names = rendezvous::names_for(protocol, peer);
  if (std::any_of(names.begin(), names.end(), [&](const auto& name) { return offers_.contains(name); }))
    return kernel("it is this host itself");
  auto bell = rendezvous::connect(names);
  calls_ += 2;
  if (!bell) return kernel(describe(bell.error()));
  if (!parts_.any_user && !rendezvous::is_trusted(bell->get()))
    return kernel("the host there is another user's");
  auto memory = device::make_link_memory();
  if (!memory) return kernel(describe(memory.error()));
  const Hello hello{.slots = parts_.slots, .slot_size = parts_.slot_size};
  if (!rendezvous::send(bell->get(), hello, {memory->fd.get(), parts_.frames}))
    return kernel("the host there does not take our memory");
  const int fd = bell->get();
  const auto link =
      parts_.device.add(std::move(memory->mapping), device::LinkRole::connector, std::move(*bell));
  if (!link) return kernel(describe(link.error()));
  if (!await(fd, {Awaited::welcome, {}, *link, peer.to_string()})) {
    parts_.device.remove(*link);
    return kernel("cannot watch the link");
  }
  parts_.stack.set_local_peer(protocol, peer, *link);
  return true;
}

// --- coming in ---

bool LocalLinks::look() {
  std::array<epoll_event, 32> events;
  const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  ++calls_;
  for (int i = 0; i < n; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    if (fd == parts_.device.info().sleep_fd) (void)parts_.device.look();
    const auto found = waiting_.find(fd);
    if (found == waiting_.end()) continue;
    switch (found->second.what) {
      case Awaited::visitor:
        let_in(fd);
        break;
      case Awaited::hello:
        on_hello(fd);
        break;
      case Awaited::welcome:
        on_welcome(fd);
        break;
    }
  }
  const bool buried = bury();
  return buried || n > 0;
}

void LocalLinks::let_in(int listening) {
  constexpr int kMostTogether = 64;
  for (int i = 0; i < kMostTogether; ++i) {
    auto visitor = rendezvous::accept(listening);
    ++calls_;
    if (!visitor) return;
    const int fd = visitor->get();
    if (!parts_.any_user && !rendezvous::is_trusted(fd)) {
      (void)rendezvous::send(fd, Welcome{.status = Welcome::other_user}, -1);
      continue;
    }
    if (unheard_ >= kMostUnheard) drop_one_unheard();
    if (!await(fd, {Awaited::hello, std::move(*visitor), {}, {}})) continue;
    ++unheard_;
    on_hello(fd);  // mostly it is there already
  }
}

// Who has met us and says nothing makes room for the next.
void LocalLinks::drop_one_unheard() {
  const auto silent = std::find_if(waiting_.begin(), waiting_.end(),
                                   [](const auto& entry) { return entry.second.what == Awaited::hello; });
  if (silent == waiting_.end()) return;
  leave(silent->first);
  --unheard_;
}

void LocalLinks::on_hello(int fd) {
  auto hello = rendezvous::receive_hello(fd);
  ++calls_;
  if (!hello && hello.error().code == ErrorCode::would_block) return;
  UniqueFd visitor = std::move(waiting_[fd].fd);
  leave(fd);
  --unheard_;
  if (!hello) return;
  if (const std::uint32_t status = admit(visitor, *hello); status != Welcome::accepted)
    (void)rendezvous::send(visitor.get(), Welcome{.status = status}, -1);
}

// Takes the visitor's socket if it accepts.
std::uint32_t LocalLinks::admit(UniqueFd& visitor, rendezvous::Received<Hello>& hello) {
  const Hello& said = hello.message;
  if (said.version != Hello{}.version) return Welcome::other_version;
  if (hello.memory.size() != 2 || !is_sane(said.slots, said.slot_size)) return Welcome::bad_memory;
  auto memory = Mapping::of_stranger(hello.memory[0].get(), device::kLinkMemory, Mapping::Access::read_write);
  auto frames = map_frames(hello.memory[1].get(), said.slots, said.slot_size);
  if (!memory || !frames) return Welcome::bad_memory;
  const Welcome welcome{.slots = parts_.slots, .slot_size = parts_.slot_size};
  if (!parts_.device.has_room()) return Welcome::no_room;
  if (!rendezvous::send(visitor.get(), welcome, parts_.frames)) return Welcome::no_room;
  const auto link = parts_.device.add(std::move(*memory), device::LinkRole::acceptor, std::move(visitor));
  if (link) (void)parts_.device.complete(*link, std::move(*frames));
  return Welcome::accepted;
}

void LocalLinks::on_welcome(int fd) {
  auto welcome = rendezvous::receive_welcome(fd);
  ++calls_;
  if (!welcome && welcome.error().code == ErrorCode::would_block) return;
  const MacAddress link = waiting_[fd].link;
  const std::string peer = waiting_[fd].name;
  leave(fd);
  const auto refused = [&](const char* why) {
    say(peer + " is reached through the kernel: the host there refuses: " + why);
    dying_.push_back(link);
  };
  if (!welcome) return refused("it has gone");
  const Welcome& said = welcome->message;
  if (said.status != Welcome::accepted) return refused(rendezvous::reason_of(said.status));
  if (welcome->memory.size() != 1 || !is_sane(said.slots, said.slot_size))
    return refused("it makes no sense");
  auto frames = map_frames(welcome->memory[0].get(), said.slots, said.slot_size);
  if (!frames) return refused("its memory cannot be mapped");
  (void)parts_.device.complete(link, std::move(*frames));
}

// --- the end ---

// What somebody sent before he went is read first.
bool LocalLinks::bury() {
  std::array<MacAddress, 16> gone;
  while (const std::size_t n = parts_.device.take_gone(gone))
    dying_.insert(dying_.end(), gone.begin(), gone.begin() + static_cast<std::ptrdiff_t>(n));
  if (dying_.empty()) return false;
  if (parts_.stack.pending()) return true;
  std::erase_if(dying_, [&](const MacAddress& link) {
    if (parts_.device.has_frames(link)) return false;
    if (const int bell = parts_.device.bell_of(link); bell >= 0 && waiting_.contains(bell)) leave(bell);
    parts_.stack.forget_station(link);
    parts_.device.remove(link);
    return true;
  });
  return true;
}

}  // namespace netchannel
