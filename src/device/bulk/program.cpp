#include "device/bulk/program.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>

#include "device/bulk/uapi.hpp"
#include "device/signals_held_back.hpp"
#include "redirect.skel.h"

namespace netchannel::device {
namespace {

// libbpf prints to stderr what our errors say in one line.
class QuietLibbpf {
 public:
  explicit QuietLibbpf(bool verbose) : verbose_(verbose) {
    if (!verbose_) before_ = libbpf_set_print(nullptr);
  }
  ~QuietLibbpf() {
    if (!verbose_) libbpf_set_print(before_);
  }
  QuietLibbpf(const QuietLibbpf&) = delete;
  QuietLibbpf& operator=(const QuietLibbpf&) = delete;

 private:
  bool verbose_;
  libbpf_print_fn_t before_ = nullptr;
};

tl::unexpected<Error> load_error(int error) {
  switch (error) {
    case EPERM:
    case EACCES:
      return fail(ErrorCode::not_permitted,
                  "loading the tc programs needs CAP_BPF and CAP_NET_ADMIN: run as root or grant them with "
                  "setcap",
                  error);
    case ENOMEM:
      return fail(ErrorCode::no_memory, "the kernel has no memory for the claim table", error);
    default:
      return fail(ErrorCode::not_supported,
                  "this kernel refused the tc programs: bulk needs Linux 6.6 or newer with CONFIG_BPF_JIT",
                  error);
  }
}

tl::unexpected<Error> link_error(int error) {
  switch (error) {
    case EPERM:
      return fail(ErrorCode::not_permitted,
                  "attaching the tc programs needs CAP_NET_ADMIN: run as root or grant it with setcap",
                  error);
    case ENODEV:
      return fail(ErrorCode::no_such_device, "the interface went away", error);
    case ERANGE:
      return fail(ErrorCode::device_busy,
                  "the interface's tc ingress hook is full of programs: end some of their owners", error);
    default:
      return fail(ErrorCode::not_supported,
                  "bulk needs tcx, tc programs held by links: Linux 6.6 or newer with CONFIG_NET_XGRESS",
                  error);
  }
}

Result<UniqueFd> link_at(const bpf_program* program, std::uint32_t index) {
  bpf_link_create_opts options{};
  options.sz = sizeof(options);
  options.flags = uapi::kBefore;
  UniqueFd link(
      bpf_link_create(bpf_program__fd(program), static_cast<int>(index), uapi::kTcxIngress, &options));
  if (!link) return link_error(errno);
  return link;
}

}  // namespace

void RedirectProgram::Destroy::operator()(redirect* skeleton) const { redirect::destroy(skeleton); }

RedirectProgram::~RedirectProgram() = default;

Result<std::unique_ptr<RedirectProgram>> RedirectProgram::attach(const Options& options) {
  const QuietLibbpf quiet(options.verbose);
  std::unique_ptr<RedirectProgram> program(new RedirectProgram);
  if (auto loaded = program->load(options); !loaded) return tl::unexpected(loaded.error());
  auto at_tap = link_at(program->skeleton_->progs.netchannel_out, options.tap_index);
  if (!at_tap) return tl::unexpected(at_tap.error());
  program->at_tap_ = std::move(*at_tap);
  auto at_interface = link_at(program->skeleton_->progs.netchannel_in, options.interface_index);
  if (!at_interface) return tl::unexpected(at_interface.error());
  program->at_interface_ = std::move(*at_interface);
  return program;
}

Result<void> RedirectProgram::load(const Options& options) {
  skeleton_.reset(redirect::open());
  if (!skeleton_) return load_error(errno);
  skeleton_->rodata->interface_index = options.interface_index;
  skeleton_->rodata->tap_index = options.tap_index;
  bpf_map__set_max_entries(skeleton_->maps.claims, options.max_claims);
  const SignalsHeldBack held_back;
  if (const int error = redirect::load(skeleton_.get()); error != 0) return load_error(-error);
  claims_.emplace(bpf_map__fd(skeleton_->maps.claims), skeleton_->bss->exact_claims);
  return {};
}

}  // namespace netchannel::device
