// A fixture whose transcript is printed if the test fails.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>

#include "testkit/transcript.hpp"

namespace netchannel::testkit {

class TranscriptTest : public ::testing::Test {
 protected:
  void TearDown() override {
    if (HasFailure() && !transcript.empty())
      std::fprintf(stderr, "transcript:\n%s", transcript.text(true).c_str());
  }
  Transcript transcript;
};

}  // namespace netchannel::testkit
