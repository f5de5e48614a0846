#include "device/af_xdp/program.hpp"

#include <bpf/bpf.h>
#include <linux/if_link.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "device/af_xdp/retry.hpp"
#include "device/signals_held_back.hpp"
#include "steer.skel.h"

namespace netchannel::device {
namespace {

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
  claims_.emplace(bpf_map__fd(skeleton_->maps.claims), skeleton_->bss->exact_claims);
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

}  // namespace netchannel::device
