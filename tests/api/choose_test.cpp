// What `automatic` takes on an interface that can do everything, and what it says about it.
#include <gtest/gtest.h>

#include "netchannel/host.hpp"
#include "testkit/veth_pair.hpp"

namespace netchannel {
namespace {

class Choosing : public testkit::VethPair {
 protected:
  Host open(HostOptions options) {
    options.device = "eth0";
    auto host = Host::open(options);
    EXPECT_TRUE(host) << describe(host.error());
    return std::move(*host);
  }
  static bool says(const Host& host, std::string_view part) {
    for (const std::string& sentence : host.explain()) {
      if (sentence.find(part) != std::string::npos) return true;
    }
    return false;
  }
};

TEST_F(Choosing, TheLeastLatencyIsXdp) {
  build();
  EXPECT_EQ(open({}).path(), Path::xdp);
}

TEST_F(Choosing, TheMostBytesAreBulk) {
  build();
  EXPECT_EQ(open({.prefer = Prefer::throughput}).path(), Path::bulk);
}

TEST_F(Choosing, BulkIsBetterThanAnXdpThatIsOnlyGeneric) {
  build();
  const Host host = open({.xdp = {.mode = XdpOptions::Mode::generic}});
  EXPECT_EQ(host.path(), Path::bulk);
  EXPECT_TRUE(says(host, "generic"));
}

TEST_F(Choosing, WithoutAnInterfaceTheKernelServesAndTheReasonsAreTold) {
  build();
  HostOptions options;
  options.device = "nosuch0";
  auto host = Host::open(options);
  ASSERT_TRUE(host) << describe(host.error());
  EXPECT_EQ(host->path(), Path::kernel_batched);
  EXPECT_TRUE(says(*host, "not accelerated: not xdp"));
  EXPECT_TRUE(says(*host, "not accelerated: not bulk"));
}

}  // namespace
}  // namespace netchannel
