#include "cli/tap_setup.hpp"

#include "lab/lab.hpp"

namespace netchannel::cli {

TapSetup tap_setup(const lab::TapPlan& plan, const std::string& device) {
  TapSetup out;
  out.addresses = {plan.stack_v4, plan.stack_v6};
  out.gateways = {plan.kernel_v4.address, plan.kernel_v6.address};
  const std::string interface = device.empty() ? "nctap0" : device;
  out.on_host = [plan, interface](const Host&) -> bench::Outcome<void> {
    if (auto done = lab::configure_tap(interface, plan); !done) {
      return bench::fail_with({ErrorCode::system, 0, ""},
                              "cannot set up the kernel's side of the TAP: " + done.error().text);
    }
    return {};
  };
  return out;
}

}  // namespace netchannel::cli
