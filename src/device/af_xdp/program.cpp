#include "device/af_xdp/program.hpp"

#include <bpf/bpf.h>
#include <linux/if_link.h>
#include <netinet/in.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "claims.h"
#include "device/af_xdp/retry.hpp"
#include "steer.skel.h"

namespace netchannel::device {
namespace {

bool is_claimable(const FlowKey& flow) {
  const bool protocol = flow.protocol == Protocol::udp || flow.protocol == Protocol::tcp;
  const bool peer = flow.is_wildcard() || (flow.peer.port != 0 && !flow.peer.address.is_unspecified());
  return protocol && peer && flow.local.port != 0 && !flow.local.address.is_unspecified();
}

netchannel_claim key_of(const FlowKey& flow) {
  netchannel_claim claim{};
  std::copy(flow.local.address.bytes().begin(), flow.local.address.bytes().end(), claim.local);
  std::copy(flow.peer.address.bytes().begin(), flow.peer.address.bytes().end(), claim.peer);
  claim.local_port = htons(flow.local.port);
  claim.peer_port = htons(flow.peer.port);
  claim.protocol = static_cast<std::uint8_t>(flow.protocol);
  return claim;
}

// The kernel gives up verifying a program (EAGAIN, bpf_check()) when a signal is pending: a program with a
// timer that is shorter than the verification could never load. Signals come when this is gone.
class SignalsHeldBack {
 public:
  SignalsHeldBack() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeldBack() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeldBack(const SignalsHeldBack&) = delete;
  SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;

 private:
  sigset_t before_{};
};

tl::unexpected<Error> load_error(int error) {
  switch (error) {
    case EPERM:
    case EACCES:
      return fail(
          ErrorCode::not_permitted,
          "loading the XDP program needs CAP_BPF and CAP_NET_ADMIN: run as root or grant them with setcap",
          error);
    case ENOMEM:
      return fail(ErrorCode::no_memory, "the kernel has no memory for the claim table", error);
    default:
      return fail(ErrorCode::not_supported,
                  "this kernel refused the XDP program: it needs Linux 5.18 or newer with CONFIG_BPF_JIT",
                  error);
  }
}

tl::unexpected<Error> link_error(int error) {
  switch (error) {
    case EBUSY:
    case EEXIST:
      return fail(ErrorCode::device_busy,
                  "another XDP program is attached to the interface: end its owner, or detach it with ip "
                  "link set dev "
                  "<interface> xdp off",
                  error);
    case EPERM:
      return fail(ErrorCode::not_permitted,
                  "attaching the XDP program needs CAP_NET_ADMIN: run as root or grant it with setcap",
                  error);
    case ERANGE:
      return fail(
          ErrorCode::not_supported,
          "native XDP refuses an MTU this large on this driver: lower the MTU, of a veth's peer too, or use "
          "generic mode",
          error);
    case ENOSPC:
      return fail(
          ErrorCode::not_supported,
          "native XDP on a veth needs as many receive queues as its peer has transmit queues: set them with "
          "ethtool -L, or use generic mode",
          error);
    case EOPNOTSUPP:
      return fail(ErrorCode::not_supported, "the driver has no native XDP: use generic mode or automatic",
                  error);
    case ENODEV:
      return fail(ErrorCode::no_such_device, "the interface went away", error);
    default:
      return fail(ErrorCode::not_supported, "the driver refused the XDP program (see the kernel log)", error);
  }
}

}  // namespace

void XdpProgram::Destroy::operator()(steer* skeleton) const { steer::destroy(skeleton); }

XdpProgram::~XdpProgram() = default;

Result<std::unique_ptr<XdpProgram>> XdpProgram::attach(const XdpCapabilities& interface,
                                                       const Options& options) {
  std::unique_ptr<XdpProgram> program(new XdpProgram);
  if (auto loaded = program->load(interface, options); !loaded) return tl::unexpected(loaded.error());
  if (options.mode != XdpMode::generic) {
    auto linked = program->link(interface, XdpMode::native);
    if (linked) return program;
    if (options.mode == XdpMode::native || linked.error().code != ErrorCode::not_supported) {
      return tl::unexpected(linked.error());
    }
    program->why_not_native_ = linked.error().what;
  }
  if (auto linked = program->link(interface, XdpMode::generic); !linked)
    return tl::unexpected(linked.error());
  return program;
}

Result<void> XdpProgram::load(const XdpCapabilities& interface, const Options& options) {
  skeleton_.reset(steer::open());
  if (!skeleton_) return load_error(errno);
  std::memcpy(&skeleton_->rodata->mac_first, interface.mac.bytes.data(), 4);
  std::memcpy(&skeleton_->rodata->mac_last, interface.mac.bytes.data() + 4, 2);
  bpf_map__set_max_entries(skeleton_->maps.claims, options.max_claims);
  bpf_map__set_max_entries(skeleton_->maps.xsks, interface.rx_queues);
  const SignalsHeldBack held_back;
  if (const int error = steer::load(skeleton_.get()); error != 0) return load_error(-error);
  return {};
}

Result<void> XdpProgram::link(const XdpCapabilities& interface, XdpMode mode) {
  bpf_link_create_opts options{};
  options.sz = sizeof(options);
  options.flags = mode == XdpMode::native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
  const int program = bpf_program__fd(skeleton_->progs.netchannel_xdp);
  const auto create = [&] {
    const int fd = bpf_link_create(program, static_cast<int>(interface.index), BPF_XDP, &options);
    if (fd >= 0) link_.reset(fd);
    return std::min(fd, 0);
  };
  // Only a program of ours may be one that is about to go with its process; a foreign one will not.
  const bool may_go = !interface.program || interface.program->ours;
  const int error = may_go ? retry_while_busy(create) : create();
  if (error != 0) return link_error(-error);
  native_ = mode == XdpMode::native;
  return {};
}

Result<void> XdpProgram::serve(std::uint32_t queue, int socket) {
  const int map = bpf_map__fd(skeleton_->maps.xsks);
  if (bpf_map_update_elem(map, &queue, &socket, BPF_ANY) != 0) {
    return fail(ErrorCode::system, "a socket could not be entered into the XDP program's map", errno);
  }
  return {};
}

Result<void> XdpProgram::claim(const FlowKey& flow) {
  if (!is_claimable(flow)) {
    return fail(ErrorCode::not_supported,
                "only UDP and TCP flows of a specific local address and port can be claimed");
  }
  const netchannel_claim key = key_of(flow);
  const std::uint32_t unused = 0;
  // Counted before it is there: the program looks for exact claims only if there are some.
  std::uint32_t& exact = skeleton_->bss->exact_claims;
  if (!flow.is_wildcard()) __atomic_fetch_add(&exact, 1, __ATOMIC_RELEASE);
  if (bpf_map_update_elem(bpf_map__fd(skeleton_->maps.claims), &key, &unused, BPF_NOEXIST) == 0) return {};
  const int error = errno;
  if (!flow.is_wildcard()) __atomic_fetch_sub(&exact, 1, __ATOMIC_RELEASE);
  if (error == EEXIST) return fail(ErrorCode::address_in_use, "this flow is claimed already", error);
  if (error == E2BIG || error == ENOMEM) {
    return fail(ErrorCode::no_memory, "the claim table is full: raise max_claims or close connections",
                error);
  }
  return fail(ErrorCode::system, "the claim could not be entered into the XDP program's map", error);
}

Result<void> XdpProgram::unclaim(const FlowKey& flow) {
  const netchannel_claim key = key_of(flow);
  if (bpf_map_delete_elem(bpf_map__fd(skeleton_->maps.claims), &key) != 0) {
    return errno == ENOENT
               ? fail(ErrorCode::invalid_argument, "this flow is not claimed", errno)
               : fail(ErrorCode::system, "the claim could not be taken out of the XDP program's map", errno);
  }
  if (!flow.is_wildcard()) __atomic_fetch_sub(&skeleton_->bss->exact_claims, 1, __ATOMIC_RELEASE);
  return {};
}

}  // namespace netchannel::device
