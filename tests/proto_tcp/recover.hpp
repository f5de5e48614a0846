// Fixtures for dialogues about loss: segments of 1000 bytes, numbered from 0, and a round trip of 100 ms.
#pragma once

#include <string>

#include "dialogue.hpp"

namespace netchannel::tcp {

using namespace std::chrono_literals;

inline std::string data(int first, int count = 1) {
  const int begin = 1 + 1000 * first;
  const int length = 1000 * count;
  return std::to_string(begin) + ":" + std::to_string(begin + length) + "(" + std::to_string(length) + ")";
}
inline std::string ack(int segment) { return ". 1:1(0) ack " + std::to_string(1 + 1000 * segment); }
inline std::string sack(int una, int left, int right) {
  return ack(una) + " <sack " + std::to_string(1 + 1000 * left) + ":" + std::to_string(1 + 1000 * right) +
         ">";
}

class Recover : public Dialogue {
 protected:
  void begin(Settings settings, const std::string& options = "") {
    set_up(
        {.settings = settings, .path_mss = settings.timestamps ? std::uint16_t{1012} : std::uint16_t{1000}});
    open();
    outbox.clear();
    now = now + 100ms;
    peer("S. 0:0(0) ack 1 <mss 1460" + options + ">");
    outbox.clear();
    EXPECT_EQ(state().rtt.srtt, 100ms);
  }
  void write_segments(int count) {
    write(static_cast<std::size_t>(count) * 1000);
    EXPECT_EQ(outbox.size(), static_cast<std::size_t>(count));
    outbox.clear();
  }
};

class RecoverSack : public Recover {
 protected:
  RecoverSack() { begin(sack_settings(), ",sackOK"); }
};

class RecoverStamped : public Recover {
 protected:
  RecoverStamped() {
    Settings settings = sack_settings();
    settings.timestamps = true;
    begin(settings, ",sackOK,TS 500 1000");
  }
};

class RecoverReno : public Recover {
 protected:
  RecoverReno() {
    Settings settings = plain_settings();
    settings.congestion = CongestionAlgorithm::reno;
    begin(settings);
  }
};

}  // namespace netchannel::tcp
