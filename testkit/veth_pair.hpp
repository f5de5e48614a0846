// Two nameless network namespaces with a veth pair, for tests against a kernel peer:
//
//   side a: eth0  10.77.0.1  fd77::1  02:00:00:00:00:0a   the test's thread stands here
//   side b: eth0  10.77.0.2  fd77::2  02:00:00:00:00:0b   the peer, whose sockets are made with in_b()
//
// They live as long as descriptors of this process, so nothing is left behind however a test ends.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "base/unique_fd.hpp"
#include "netchannel/address.hpp"

namespace netchannel::testkit {

inline constexpr MacAddress kOurMac{{0x02, 0, 0, 0, 0, 0x0a}};
inline constexpr MacAddress kPeerMac{{0x02, 0, 0, 0, 0, 0x0b}};
inline constexpr IpAddress kOurV4 = IpAddress::v4(10, 77, 0, 1);
inline constexpr IpAddress kPeerV4 = IpAddress::v4(10, 77, 0, 2);
inline constexpr IpAddress kOurV6 = IpAddress::v6({0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
inline constexpr IpAddress kPeerV6 = IpAddress::v6({0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});

struct VethOptions {
  std::uint32_t mtu = 1500;
  std::uint32_t queues = 1;       // of our side, receive; the peer has as many for transmit
  std::uint32_t peer_queues = 0;  // 0: as many as ours
  bool offloads = true;           // of the peer: false switches its transmit checksum and segmentation off
};

// Exit status of a shell command in the thread's namespace.
int shell(const std::string& command);
UniqueFd current_namespace();
// For ip(8)'s "netns" argument.
std::string namespace_path(const UniqueFd& of);

class VethPair : public ::testing::Test {
 protected:
  void SetUp() override;  // skips, with the reason, where namespaces cannot be made
  void TearDown() override;

  // Makes both sides and waits for the carrier.
  void build(const VethOptions& options = {});
  // Runs `what` with the thread in the peer's namespace; sockets made there stay there.
  void in_b(const std::function<void()>& what);
  static void must(const std::string& command);
  std::string path_of_b() const;

  static constexpr IpAddress kOurV4 = testkit::kOurV4;
  static constexpr IpAddress kPeerV4 = testkit::kPeerV4;
  static constexpr IpAddress kOurV6 = testkit::kOurV6;
  static constexpr IpAddress kPeerV6 = testkit::kPeerV6;

  // The pieces of build(), for those who join the two sides in another way (wan_pair.hpp).
  void make_sides();
  static void set_up(const IpAddress& v4, const IpAddress& v6);  // eth0 of the namespace, and its loopback
  static void offloads_off();                                    // of eth0: checksums and segmentation
  static void wait_for_carrier();                                // of eth0

 private:
  UniqueFd home_;
  UniqueFd a_;
  UniqueFd b_;
  bool made_ = false;
};

}  // namespace netchannel::testkit
