// Receiving: how datagrams leave the kernel's queue and become Datagrams. See udp_socket.hpp.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "kernel/batches.hpp"
#include "kernel/clock.hpp"
#include "kernel/socket_calls.hpp"
#include "kernel/udp_socket.hpp"

namespace netchannel::kernel {

// What stands beside a message in its control data.
struct Beside {
  IpAddress local;          // where it was sent to, if has_local
  std::size_t segment = 0;  // GRO: bytes of each datagram but the last; 0: one datagram
  bool has_local = false;
  std::uint8_t tos = 0;
  std::uint8_t ttl = 0;
};

namespace {

template <class T>
T read(const cmsghdr* from) {
  T value{};
  std::memcpy(&value, CMSG_DATA(from), std::min(sizeof(value), from->cmsg_len - CMSG_LEN(0)));
  return value;
}

void read_v4(const cmsghdr* c, Beside& beside) {
  if (c->cmsg_type == IP_PKTINFO) {
    beside.local = IpAddress::v4(ntohl(read<in_pktinfo>(c).ipi_addr.s_addr));
    beside.has_local = true;
  } else if (c->cmsg_type == IP_TOS) {
    beside.tos = read<std::uint8_t>(c);
  } else if (c->cmsg_type == IP_TTL) {
    beside.ttl = static_cast<std::uint8_t>(read<int>(c));
  }
}

void read_v6(const cmsghdr* c, Beside& beside) {
  if (c->cmsg_type == IPV6_PKTINFO) {
    beside.local = SocketAddress::address_of(read<in6_pktinfo>(c).ipi6_addr);
    beside.has_local = true;
  } else if (c->cmsg_type == IPV6_TCLASS) {
    beside.tos = static_cast<std::uint8_t>(read<int>(c));
  } else if (c->cmsg_type == IPV6_HOPLIMIT) {
    beside.ttl = static_cast<std::uint8_t>(read<int>(c));
  }
}

void read_control(msghdr& message, Beside& beside) {
  if (message.msg_controllen == 0) return;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level == IPPROTO_IP) {
      read_v4(c, beside);
    } else if (c->cmsg_level == IPPROTO_IPV6) {
      read_v6(c, beside);
    } else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
      beside.segment = static_cast<std::size_t>(std::max(0, read<int>(c)));
    }
  }
}

// All but the peer, the frame and its bytes.
void describe_into(Datagram& out, const Endpoint& local, const Beside& beside) {
  out.local = beside.has_local ? Endpoint{beside.local, local.port} : local;
  out.tos = beside.tos;
  out.ttl = beside.ttl;
  out.truncated = false;
  out.slow_path = false;
}

void release(Datagram& datagram) {
  datagram.frame = {};
  datagram.payload = {};
}

tl::unexpected<Error> no_frames() {
  return fail(ErrorCode::no_memory,
              "all frames are in use; release datagrams or give the host more receive frames");
}

}  // namespace

Result<std::size_t> UdpSocket::receive(std::span<Datagram> out, Instant now) noexcept {
  auto got = receive_some(out, MSG_DONTWAIT);
  if (!got) return got;
  return take_in(out.first(*got), now);
}

Result<std::size_t> UdpSocket::receive_blocking(std::span<Datagram> out, std::size_t least,
                                                Instant deadline) noexcept {
  least = std::min(least, out.size());
  const bool in_the_call = deadline == kForever && least != 0;
  const int flags = !in_the_call ? MSG_DONTWAIT : receive_batch_ ? MSG_WAITFORONE : 0;
  std::size_t total = 0;
  for (;;) {
    auto got = receive_some(out.subspan(total), flags);
    if (!got && total == 0) return got;
    if (!got) {
      if (got.error().code != ErrorCode::interrupted) errors_.put_back(got.error());
      return total;
    }
    if (*got != 0) total += take_in(out.subspan(total, *got), monotonic_now());
    if (total >= least) return total;
    if (in_the_call) continue;
    auto ready = wait_for(POLLIN, deadline);
    if (!ready && total == 0) return tl::unexpected(ready.error());
    if (!ready || !*ready) return total;
  }
}

std::size_t UdpSocket::take_in(std::span<Datagram> filled, Instant arrival) noexcept {
  for (Datagram& datagram : filled) {
    datagram.arrival = arrival;
    if (datagram.truncated) counters_->add(Counter::udp_truncated_read);
  }
  if (!filled.empty()) counters_->add(Counter::udp_received, filled.size());
  return filled.size();
}

Result<std::size_t> UdpSocket::receive_some(std::span<Datagram> out, int flags) noexcept {
  if (out.empty()) return 0;
  // What is held back came before any error that was noticed since.
  if (!errors_.empty() && !holds_back()) return tl::unexpected(errors_.pop());
  return receive_batch_ ? receive_batch(out, flags) : receive_plain(out.front(), flags);
}

// A failed call as the receiver is told of it. If ICMP errors are queued, the oldest of them is why the call
// failed.
Error UdpSocket::told(int sys_errno) noexcept {
  if (!connected() || sys_errno == EINTR) return receive_error(sys_errno);
  drain_errors();
  return errors_.empty() ? receive_error(sys_errno) : errors_.pop();
}

void UdpSocket::drain_errors() noexcept {
  const PendingErrors::Drained drained = errors_.drain(fd());
  syscalls_ += drained.syscalls;
  if (drained.icmp_errors != 0) counters_->add(Counter::icmp_errors_delivered, drained.icmp_errors);
}

// A connected socket may still hold datagrams that others sent before it was connected.
bool UdpSocket::from_peer(const Endpoint& sender) noexcept {
  if (!connected() || sender == peer_) return true;
  counters_->drop(DropReason::udp_wrong_peer);
  return false;
}

bool UdpSocket::take_spare_frame() noexcept {
  auto frame = pool_->allocate(0);
  if (!frame) {
    counters_->drop(DropReason::no_frames);
    return false;
  }
  spare_ = std::move(*frame);
  spare_.append(spare_.tailroom());
  return true;
}

// The one call of the plain path: the datagram's length, however much of it fitted, or -1 with errno.
ssize_t UdpSocket::call_plain(MutableBytes room, SocketAddress& sender, Beside& beside, int flags) noexcept {
  ++syscalls_;
  if (!local_from_kernel_ && !tos_and_ttl_) {
    sender.length = sizeof(sender.v6);
    return ::recvfrom(fd(), room.data(), room.size(), flags | MSG_TRUNC, &sender.any, &sender.length);
  }
  ReceiveControl control;
  iovec piece{room.data(), room.size()};
  msghdr message{&sender.any, sizeof(sender.v6), &piece, 1, control.bytes.data(), control.bytes.size(), 0};
  const ssize_t length = ::recvmsg(fd(), &message, flags | MSG_TRUNC);
  if (length >= 0) read_control(message, beside);
  return length;
}

Result<std::size_t> UdpSocket::receive_plain(Datagram& out, int flags) noexcept {
  release(out);
  if (!spare_ && !take_spare_frame()) return no_frames();
  const MutableBytes room = spare_.mutable_bytes();
  SocketAddress sender;
  Beside beside;
  ssize_t length = 0;
  do {
    length = call_plain(room, sender, beside, flags);
    if (length < 0) {
      const int why = errno;
      if (why == EAGAIN) return 0;
      return tl::unexpected(told(why));
    }
    out.peer = sender.endpoint();
  } while (!from_peer(out.peer));
  describe_into(out, local_, beside);
  const std::size_t kept = std::min(static_cast<std::size_t>(length), room.size());
  out.truncated = static_cast<std::size_t>(length) > kept;
  out.payload = room.first(kept);
  spare_.drop_back(room.size() - kept);
  out.frame = std::move(spare_);
  return 1;
}

// Gives the first `wanted` messages an empty frame each; returns how many have one.
std::size_t UdpSocket::arm(std::size_t wanted) noexcept {
  ReceiveBatch& batch = *receive_batch_;
  const bool with_control = gro_ || local_from_kernel_ || tos_and_ttl_;
  for (std::size_t i = 0; i < wanted; ++i) {
    Frame& frame = batch.frames[i];
    if (!frame) {
      auto fresh = pool_->allocate(0);
      if (!fresh) return i;
      frame = std::move(*fresh);
      const MutableBytes room = frame.append(frame.tailroom());
      batch.pieces[i] = {room.data(), room.size()};
    }
    msghdr& header = batch.headers[i].msg_hdr;
    header = {&batch.senders[i].any, sizeof(sockaddr_in6), &batch.pieces[i], 1, nullptr, 0, 0};
    if (!with_control) continue;
    header.msg_control = batch.controls[i].bytes.data();
    header.msg_controllen = batch.controls[i].bytes.size();
  }
  return wanted;
}

Result<std::size_t> UdpSocket::receive_batch(std::span<Datagram> out, int flags) noexcept {
  ReceiveBatch& batch = *receive_batch_;
  for (;;) {
    if (batch.next == batch.filled) {
      const std::size_t wanted = std::min(batch.window, out.size());
      // Before new frames are taken, so that they are the same, warm ones.
      for (Datagram& datagram : out.first(wanted)) release(datagram);
      const std::size_t armed = arm(wanted);
      if (armed == 0) {
        counters_->drop(DropReason::no_frames);
        return no_frames();
      }
      ++syscalls_;
      // Without its timeout, which is looked at only after a datagram has come.
      const int filled = ::recvmmsg(fd(), batch.headers.data(), static_cast<unsigned>(armed), flags, nullptr);
      if (filled < 0) {
        const int why = errno;
        if (why == EAGAIN) return 0;
        return tl::unexpected(told(why));
      }
      batch.next = 0;
      batch.offset = 0;
      batch.filled = static_cast<std::size_t>(filled);
      if (batch.filled == batch.window) batch.window = std::min(2 * batch.window, kMessages);
    }
    const std::size_t given = hand_out(out);
    if (given != 0) return given;
  }
}

std::size_t UdpSocket::hand_out(std::span<Datagram> out) noexcept {
  ReceiveBatch& batch = *receive_batch_;
  std::size_t given = 0;
  while (given < out.size() && batch.next < batch.filled) {
    mmsghdr& header = batch.headers[batch.next];
    const Endpoint sender = batch.senders[batch.next].endpoint();
    const std::size_t length = header.msg_len;
    Frame& frame = batch.frames[batch.next];
    if (!from_peer(sender)) {
      ++batch.next;
      continue;
    }
    Beside beside;
    read_control(header.msg_hdr, beside);
    const std::size_t segment = beside.segment != 0 ? beside.segment : length;
    if (segment < length && batch.offset == 0) counters_->add(Counter::udp_gro_messages);
    frame.drop_back(frame.size() - length);
    const Bytes message = frame.bytes();
    do {
      const Bytes payload = message.subspan(batch.offset, std::min(segment, length - batch.offset));
      batch.offset += payload.size();
      Datagram& datagram = out[given++];
      datagram.peer = sender;
      describe_into(datagram, local_, beside);
      datagram.truncated = (header.msg_hdr.msg_flags & MSG_TRUNC) != 0;
      datagram.frame = batch.offset == length ? std::exchange(frame, {}) : frame.share();
      datagram.payload = payload;
    } while (batch.offset < length && given < out.size());
    if (batch.offset < length) break;
    ++batch.next;
    batch.offset = 0;
  }
  return given;
}

bool UdpSocket::holds_back() const noexcept {
  return receive_batch_ && receive_batch_->next != receive_batch_->filled;
}

std::size_t UdpSocket::pending() const noexcept {
  if (!holds_back()) return 0;
  std::size_t datagrams = 0;
  for (std::size_t i = receive_batch_->next; i < receive_batch_->filled; ++i) {
    Beside beside;
    read_control(receive_batch_->headers[i].msg_hdr, beside);
    const std::size_t gone = i == receive_batch_->next ? receive_batch_->offset : 0;
    const std::size_t left = receive_batch_->headers[i].msg_len - gone;
    datagrams += beside.segment != 0 ? (left + beside.segment - 1) / beside.segment : 1;
  }
  return datagrams;
}

Result<bool> UdpSocket::wait_writable(Instant deadline) noexcept { return wait_for(POLLOUT, deadline); }

Result<bool> UdpSocket::wait_for(short events, Instant deadline) noexcept {
  const auto ready = kernel::wait_for(fd(), events, deadline, syscalls_);
  if (!ready) return tl::unexpected(ready.error());
  // An error that no receiving call would meet any more must not make every further wait return at once.
  if ((*ready & POLLERR) != 0 && connected()) drain_errors();
  return *ready != 0;
}

}  // namespace netchannel::kernel
