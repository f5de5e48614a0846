// The ioctls against ethtool(8) and against the kernel that answers both.
#include "control/ethtool.hpp"

#include <map>

#include "namespace_pair.hpp"

namespace netchannel::control {
namespace {

class EthtoolTest : public NamespacePair {
 protected:
  void two_queues() {
    must("ip link del eth0 && ip link add eth0 numrxqueues 2 numtxqueues 2 type veth peer name far");
  }
};

TEST_F(EthtoolTest, NamesTheDriver) { EXPECT_EQ(driver_name("eth0").value(), "veth"); }

TEST_F(EthtoolTest, AMissingInterfaceIsTold) {
  for (const char* name : {"nonesuch", "", "a-name-longer-than-the-kernel-takes"}) {
    EXPECT_EQ(driver_name(name).error().code, ErrorCode::no_such_device) << name;
    EXPECT_EQ(channels(name).error().code, ErrorCode::no_such_device) << name;
    EXPECT_EQ(feature(name, Feature::gro).error().code, ErrorCode::no_such_device) << name;
    EXPECT_EQ(set_feature(name, Feature::gro, true).error().code, ErrorCode::no_such_device) << name;
  }
}

TEST_F(EthtoolTest, ReadsAndSetsChannels) {
  two_queues();
  const Channels before = channels("eth0").value();
  EXPECT_EQ(before.max_rx, 2u);
  EXPECT_EQ(before.max_tx, 2u);
  EXPECT_EQ(before.rx_queues(), 2u);
  EXPECT_EQ(before.tx_queues(), 2u);
  const auto set = set_channels("eth0", {.rx = 1, .tx = 1});
  ASSERT_TRUE(set.has_value()) << describe(set.error());
  EXPECT_EQ(channels("eth0")->rx_queues(), 1u);
  EXPECT_EQ(channels("eth0")->tx_queues(), 1u);
  EXPECT_EQ(set_channels("eth0", {.rx = 3, .tx = 3}).error().code, ErrorCode::invalid_argument);
}

TEST_F(EthtoolTest, ADriverWithoutChannelsSaysSo) {
  EXPECT_EQ(channels("lo").error().code, ErrorCode::not_supported);
}

TEST_F(EthtoolTest, AgreesWithEthtoolOnEveryFeature) {
  if (shell("command -v ethtool > /dev/null || test -x /usr/sbin/ethtool") != 0) {
    GTEST_SKIP() << "SKIPPED: ethtool is not installed; apt install ethtool";
  }
  const std::map<Feature, const char*> long_names = {
      {Feature::rx_checksum, "rx-checksumming"},      {Feature::tx_checksum, "tx-checksumming"},
      {Feature::scatter_gather, "scatter-gather"},    {Feature::tso, "tcp-segmentation-offload"},
      {Feature::gso, "generic-segmentation-offload"}, {Feature::gro, "generic-receive-offload"},
      {Feature::lro, "large-receive-offload"},        {Feature::rx_vlan, "rx-vlan-offload"},
      {Feature::tx_vlan, "tx-vlan-offload"}};
  for (const char* interface_name : {"eth0", "lo"}) {
    for (const Feature which : kFeatures) {
      const bool on = feature(interface_name, which).value();
      EXPECT_EQ(shell("PATH=$PATH:/usr/sbin:/sbin ethtool -k " + std::string(interface_name) +
                      " | grep -q '^" + long_names.at(which) + ": " + (on ? "on" : "off") + "'"),
                0)
          << interface_name << " " << to_string(which) << " is not " << on;
    }
  }
}

TEST_F(EthtoolTest, SwitchesFeaturesOffAndOn) {
  for (const Feature which : {Feature::tx_checksum, Feature::scatter_gather, Feature::tso, Feature::gso,
                              Feature::gro, Feature::rx_vlan, Feature::tx_vlan}) {
    for (const bool on : {false, true}) {
      const auto set = set_feature("eth0", which, on);
      ASSERT_TRUE(set.has_value()) << to_string(which) << ": " << describe(set.error());
      EXPECT_EQ(feature("eth0", which).value(), on) << to_string(which);
    }
  }
}

TEST_F(EthtoolTest, TsoGoesWithTheChecksumsItNeeds) {
  ASSERT_TRUE(feature("eth0", Feature::tso).value());
  ASSERT_TRUE(set_feature("eth0", Feature::tx_checksum, false));
  EXPECT_FALSE(feature("eth0", Feature::tso).value());
  EXPECT_EQ(set_feature("eth0", Feature::tso, true).error().code, ErrorCode::not_supported);
}

TEST_F(EthtoolTest, AFixedFeatureIsNotSupported) {
  ASSERT_FALSE(feature("eth0", Feature::lro).value());
  EXPECT_EQ(set_feature("eth0", Feature::lro, true).error().code, ErrorCode::not_supported);
}

TEST_F(EthtoolTest, SettingWithoutPrivilegeIsNotPermitted) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    if (!feature("eth0", Feature::gro)) ::_exit(3);
    const auto set = set_feature("eth0", Feature::gro, false);
    ::_exit(!set && set.error().code == ErrorCode::not_permitted ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace netchannel::control
