#include "testkit/veth_pair.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace netchannel::testkit {

int shell(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

UniqueFd current_namespace() { return UniqueFd{::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)}; }

void VethPair::SetUp() {
  home_ = current_namespace();
  if (::geteuid() != 0 || ::unshare(CLONE_NEWNET) != 0) {
    GTEST_SKIP() << "SKIPPED: needs root, to make network namespaces";
  }
  made_ = true;
}

void VethPair::TearDown() {
  if (!made_) return;
  ASSERT_EQ(::setns(home_.get(), CLONE_NEWNET), 0);
}

std::string namespace_path(const UniqueFd& of) {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(of.get());
}

std::string VethPair::path_of_b() const { return namespace_path(b_); }

void VethPair::make_sides() {
  b_ = current_namespace();
  ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
  a_ = current_namespace();
}

void VethPair::build(const VethOptions& options) {
  make_sides();
  const auto queues = [](std::uint32_t n) {
    return " numrxqueues " + std::to_string(n) + " numtxqueues " + std::to_string(n);
  };
  const std::string mtu = " mtu " + std::to_string(options.mtu);
  must("ip link add eth0 address 02:00:00:00:00:0a" + mtu + queues(options.queues) +
       " type veth peer name eth0 address 02:00:00:00:00:0b" + mtu +
       queues(options.peer_queues == 0 ? options.queues : options.peer_queues) + " netns " + path_of_b());
  set_up(kOurV4, kOurV6);
  in_b([&] {
    set_up(kPeerV4, kPeerV6);
    if (!options.offloads) offloads_off();
  });
  wait_for_carrier();
  in_b([] { wait_for_carrier(); });
}

// Without duplicate address detection the kernel's link-local address is there at once, which it needs to ask
// for neighbours in our place.
void VethPair::set_up(const IpAddress& v4, const IpAddress& v6) {
  must("sysctl -qw net.ipv6.conf.eth0.accept_dad=0 && ip link set lo up && ip addr add " + v4.to_string() +
       "/24 brd + dev eth0 && ip addr add " + v6.to_string() + "/64 dev eth0 nodad && ip link set eth0 up");
}

void VethPair::offloads_off() { must("ethtool -K eth0 tx off gso off tso off >/dev/null"); }

// What is sent before the kernel's link watch has seen the carrier is dropped.
void VethPair::wait_for_carrier() {
  must(
      "for i in $(seq 100); do ip -o link show dev eth0 | grep -q 'state UP' && exit 0; sleep 0.05; done; "
      "exit 1");
}

void VethPair::in_b(const std::function<void()>& what) {
  ASSERT_EQ(::setns(b_.get(), CLONE_NEWNET), 0);
  what();
  ASSERT_EQ(::setns(a_.get(), CLONE_NEWNET), 0);
}

void VethPair::must(const std::string& command) { ASSERT_EQ(shell(command), 0) << command; }

}  // namespace netchannel::testkit
