// Sending: how OutDatagrams become as few messages to the kernel as it takes, and what each of them met. See
// udp_socket.hpp.
//
//   in:      A A A B C C      (peers; equal sizes)
//   groups:  [A A A] B [C C]  three messages in one sendmmsg; those in brackets with UDP_SEGMENT
//
// A call that stops early says only how many messages it took. Whatever stopped it, the rest is planned again
// from the first datagram not taken, so order and completeness never depend on why.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kernel/batches.hpp"
#include "kernel/udp_socket.hpp"

namespace netchannel::kernel {

namespace {

bool no_room(int sys_errno) { return sys_errno == EAGAIN || sys_errno == ENOBUFS || sys_errno == ENOMEM; }

// EIO: the route or the device cannot complete checksums. EINVAL, EMSGSIZE: a segment is above the path's
// MTU, or the socket sends without checksums. The others: a kernel or a filter that does not know
// UDP_SEGMENT.
bool refuses_segmentation(int sys_errno) {
  return sys_errno == EIO || sys_errno == EINVAL || sys_errno == EMSGSIZE || sys_errno == EOPNOTSUPP ||
         sys_errno == ENOPROTOOPT;
}

SendStatus status_of(int sys_errno) {
  switch (sys_errno) {
    case EDESTADDRREQ:
    case ENOTCONN:
      return SendStatus::no_peer;
    case EACCES:
    case EINVAL:
    case EAFNOSUPPORT:
    case EADDRNOTAVAIL:
      return SendStatus::bad_peer;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
      return SendStatus::unreachable;
    case EMSGSIZE:
      return SendStatus::message_too_long;
    case ECONNREFUSED:
      return SendStatus::refused;
    default:
      return SendStatus::failed;
  }
}

bool is_none(const Endpoint& peer) { return peer.port == 0 && peer.address.is_unspecified(); }

bool repeats(const OutDatagram& datagram) { return datagram.same && datagram.payload.empty(); }

void* base_of(Bytes payload) { return const_cast<std::byte*>(payload.data()); }

}  // namespace

std::size_t UdpSocket::send(std::span<const OutDatagram> in, std::span<SendStatus> statuses) noexcept {
  const std::size_t taken = send_batch_ ? send_batched(in, statuses) : send_plain(in, statuses);
  std::fill(statuses.begin() + static_cast<std::ptrdiff_t>(taken),
            statuses.begin() + static_cast<std::ptrdiff_t>(in.size()), SendStatus::would_block);
  return taken;
}

// What can be told without asking the kernel.
SendStatus UdpSocket::check(const Endpoint& peer, std::size_t size) const noexcept {
  const bool none = is_none(peer);
  if (none && !connected()) return SendStatus::no_peer;
  const Endpoint& to = none ? peer_ : peer;
  if (to.port == 0) return SendStatus::bad_peer;
  const bool v4 = to.address.is_v4();
  if (family_ == AF_INET && !v4) return SendStatus::bad_peer;
  if (family_ == AF_INET6 && v4 &&
      (v6_only_ || (local_.address.is_v6() && !local_.address.is_unspecified()))) {
    return SendStatus::bad_peer;
  }
  return size > (v4 ? kMaxPayloadV4 : kMaxPayloadV6) ? SendStatus::message_too_long : SendStatus::queued;
}

bool UdpSocket::is_connected_peer(const Endpoint& peer) const noexcept {
  return connected() && (peer == peer_ || is_none(peer));
}

// One sendto; 0 or its errno.
int UdpSocket::send_one(const Endpoint& peer, Bytes payload) noexcept {
  ++syscalls_;
  ssize_t sent = 0;
  if (is_connected_peer(peer)) {
    sent = ::send(fd(), payload.data(), payload.size(), MSG_DONTWAIT);
  } else {
    const SocketAddress to(peer, family_, zone_);
    sent = ::sendto(fd(), payload.data(), payload.size(), MSG_DONTWAIT, &to.any, to.length);
  }
  return sent < 0 ? errno : 0;
}

// Whether a send failed because of an ICMP error that had been waiting. The error is then told by that send
// alone.
bool UdpSocket::was_pending(int sys_errno) noexcept {
  if (!connected()) return false;
  drain_errors();
  return errors_.take(receive_error(sys_errno).code);
}

SendStatus UdpSocket::failure(int sys_errno) noexcept {
  if (no_room(sys_errno)) return SendStatus::would_block;
  was_pending(sys_errno);
  return status_of(sys_errno);
}

std::size_t UdpSocket::send_plain(std::span<const OutDatagram> in, std::span<SendStatus> statuses) noexcept {
  Bytes before;
  std::uint64_t sent = 0;
  std::size_t i = 0;
  for (; i < in.size(); ++i) {
    const Bytes payload = repeats(in[i]) ? before : in[i].payload;
    SendStatus status = i == 0 && repeats(in[i]) ? SendStatus::failed : check(in[i].peer, payload.size());
    if (status == SendStatus::queued) {
      const int why = send_one(in[i].peer, payload);
      if (why != 0) status = failure(why);
    }
    if (status == SendStatus::would_block) break;
    statuses[i] = status;
    if (status == SendStatus::queued) ++sent;
    before = payload;
  }
  counters_->add(Counter::udp_sent, sent);
  return i;
}

std::size_t UdpSocket::send_batched(std::span<const OutDatagram> in,
                                    std::span<SendStatus> statuses) noexcept {
  SendBatch& batch = *send_batch_;
  SendPosition at;
  while (at.index < in.size()) {
    const SendPosition end = plan(in, statuses, at);
    const int result = batch.count != 0 ? transmit() : 0;
    const std::size_t sent = static_cast<std::size_t>(std::max(0, result));
    count_sent(sent);
    if (sent == batch.count) {
      at = end;
      continue;
    }
    const SendBatch::Group& stopped = batch.groups[sent];
    at = {stopped.first, stopped.payload};
    const SendStatus status = why_stopped(sent, result < 0 ? -result : 0);
    if (status == SendStatus::would_block) return at.index;
    // Part of a batch went, and no error was swallowed on the way: the next call will say why.
    if (status == SendStatus::queued && result > 0) continue;
    statuses[at.index] = status;
    ++at.index;
  }
  return in.size();
}

// Groups as many of the datagrams from `at` on as fit one call, and gives each its status: queued, or what is
// wrong with it. Returns where the next call goes on.
SendPosition UdpSocket::plan(std::span<const OutDatagram> in, std::span<SendStatus> statuses,
                             SendPosition at) noexcept {
  SendBatch& batch = *send_batch_;
  batch.count = 0;
  batch.piece_count = 0;
  for (; at.index < in.size(); ++at.index) {
    const OutDatagram& datagram = in[at.index];
    const Bytes payload = repeats(datagram) ? at.before : datagram.payload;
    const bool orphan = at.index == 0 && repeats(datagram);
    const SendStatus status = orphan ? SendStatus::failed : check(datagram.peer, payload.size());
    if (status == SendStatus::queued) {
      if (joins(datagram.peer, payload)) {
        append(payload);
      } else if (batch.count < kMessages && batch.piece_count < SendBatch::kPieces) {
        begin(datagram.peer, payload, at.index);
      } else {
        return at;
      }
    }
    statuses[at.index] = status;
    at.before = payload;
  }
  return at;
}

// Whether the datagram can be one more segment of the last group: all are of one size, and only the last may
// be shorter (and not empty, which segmentation cannot express).
bool UdpSocket::joins(const Endpoint& peer, Bytes payload) const noexcept {
  const SendBatch& batch = *send_batch_;
  if (batch.count == 0 || payload.empty() || batch.piece_count == SendBatch::kPieces) return false;
  const SendBatch::Group& group = batch.groups[batch.count - 1];
  return !group.complete && group.segments < kSegments && payload.size() <= group.payload.size() &&
         group.payload.size() <= gso_limit_ && group.bytes + payload.size() <= kMaxSuper &&
         peer == *group.peer;
}

void UdpSocket::begin(const Endpoint& peer, Bytes payload, std::size_t index) noexcept {
  SendBatch& batch = *send_batch_;
  SendBatch::Group& group = batch.groups[batch.count];
  msghdr& header = batch.headers[batch.count].msg_hdr;
  group = {index, payload, &peer, batch.piece_count, payload.size(), 1, false};
  header = {};
  if (!is_connected_peer(peer)) {
    SocketAddress& to = batch.peers[batch.count];
    to.set(peer, family_, zone_);
    header.msg_name = &to.any;
    header.msg_namelen = to.length;
  }
  header.msg_iov = &batch.pieces[batch.piece_count];
  header.msg_iovlen = 1;
  batch.pieces[batch.piece_count++] = {base_of(payload), payload.size()};
  ++batch.count;
}

void UdpSocket::append(Bytes payload) noexcept {
  SendBatch& batch = *send_batch_;
  SendBatch::Group& group = batch.groups[batch.count - 1];
  group.bytes += payload.size();
  group.complete = payload.size() < group.payload.size();
  ++group.segments;
  iovec& last = batch.pieces[batch.piece_count - 1];
  // Payloads that lie one after the other in memory are one piece: the kernel copies fewer, longer ones
  // faster.
  if (static_cast<const std::byte*>(last.iov_base) + last.iov_len == payload.data()) {
    last.iov_len += payload.size();
    return;
  }
  batch.pieces[batch.piece_count++] = {base_of(payload), payload.size()};
  ++batch.headers[batch.count - 1].msg_hdr.msg_iovlen;
}

// Gives the planned groups to the kernel. Returns how many it took, or -errno if it took none.
int UdpSocket::transmit() noexcept {
  SendBatch& batch = *send_batch_;
  // A lone datagram costs what a plain program pays for it.
  if (batch.count == 1 && batch.groups[0].segments == 1) {
    const int why = send_one(*batch.groups[0].peer, batch.groups[0].payload);
    return why == 0 ? 1 : -why;
  }
  for (std::size_t i = 0; i < batch.count; ++i) {
    if (batch.groups[i].segments == 1) continue;
    msghdr& header = batch.headers[i].msg_hdr;
    header.msg_control = batch.controls[i].bytes.data();
    header.msg_controllen = batch.controls[i].bytes.size();
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = IPPROTO_UDP;
    c->cmsg_type = UDP_SEGMENT;
    c->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto size = static_cast<std::uint16_t>(batch.groups[i].payload.size());
    std::memcpy(CMSG_DATA(c), &size, sizeof(size));
  }
  ++syscalls_;
  const int sent = ::sendmmsg(fd(), batch.headers.data(), static_cast<unsigned>(batch.count), MSG_DONTWAIT);
  return sent < 0 ? -errno : sent;
}

void UdpSocket::count_sent(std::size_t groups) noexcept {
  std::uint64_t datagrams = 0;
  std::uint64_t combined = 0;
  for (const SendBatch::Group& group : std::span(send_batch_->groups).first(groups)) {
    datagrams += group.segments;
    if (group.segments > 1) ++combined;
  }
  if (datagrams != 0) counters_->add(Counter::udp_sent, datagrams);
  if (combined != 0) counters_->add(Counter::udp_gso_messages, combined);
}

// The status of the first datagram of a group that the kernel did not take. sys_errno is 0 if groups before
// it went in the same call: sendmmsg then keeps the error to itself, and an ICMP error that it met is
// forgotten by the socket; only the queue of errors still has it. queued: there was none, or the datagram has
// gone after all.
SendStatus UdpSocket::why_stopped(std::size_t group, int sys_errno) noexcept {
  if (sys_errno == 0) {
    if (!connected()) return SendStatus::queued;
    drain_errors();
    if (errors_.empty()) return SendStatus::queued;
    return status_of(errors_.pop().sys_errno);
  }
  if (no_room(sys_errno)) return SendStatus::would_block;
  if (was_pending(sys_errno)) return status_of(sys_errno);
  if (send_batch_->groups[group].segments > 1 && refuses_segmentation(sys_errno)) {
    return first_alone(group, sys_errno);
  }
  return status_of(sys_errno);
}

// A group was refused, perhaps because of its segmentation: its first datagram alone shows whether it was.
SendStatus UdpSocket::first_alone(std::size_t group, int refusal) noexcept {
  const SendBatch::Group& refused = send_batch_->groups[group];
  const int why = send_one(*refused.peer, refused.payload);
  if (why != 0) return failure(why);
  counters_->add(Counter::udp_gso_refused);
  counters_->add(Counter::udp_sent);
  // A large segment may be above the MTU of one peer's path, so smaller ones are still combined; they are
  // found to fit or not by being sent. All else is for good: asking again would cost every batch a second
  // call.
  const std::size_t size = refused.payload.size();
  const bool too_large = (refusal == EMSGSIZE || refusal == EINVAL) && size > kSegmentThatAlwaysFits;
  gso_limit_ = too_large ? static_cast<std::uint32_t>(size - 1) : 0;
  return SendStatus::queued;
}

}  // namespace netchannel::kernel
