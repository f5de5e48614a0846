// What has happened so far in a test, packet by packet, in virtual time. A test holds one and notes what it
// sends and sees; if the test fails, the transcript says how it came to that (fixture TranscriptTest in
// testkit/gtest.hpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "netchannel/bytes.hpp"
#include "netchannel/time.hpp"

namespace netchannel::testkit {

class Transcript {
 public:
  // `who` is short: "a -> b", "stack", "kernel".
  void packet(Instant when, std::string_view who, Bytes frame);
  void note(Instant when, std::string_view who, std::string_view what);
  // A line an entry, "+0.001500 a -> b  ...", with a hex dump under each packet if asked.
  std::string text(bool with_bytes = false) const;
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Instant when;
    std::string who;
    std::string what;
    std::vector<std::byte> bytes;
  };
  std::vector<Entry> entries_;
};

}  // namespace netchannel::testkit
