#include "testkit/transcript.hpp"

#include <cstdio>

#include "testkit/hex.hpp"

namespace netchannel::testkit {

void Transcript::packet(Instant when, std::string_view who, Bytes frame) {
  entries_.push_back({when, std::string(who), summary(frame), {frame.begin(), frame.end()}});
}

void Transcript::note(Instant when, std::string_view who, std::string_view what) {
  entries_.push_back({when, std::string(who), std::string(what), {}});
}

std::string Transcript::text(bool with_bytes) const {
  std::string out;
  for (const Entry& entry : entries_) {
    char when[40];
    std::snprintf(when, sizeof when, "+%.6f ", static_cast<double>(entry.when.ns) / 1e9);
    out += when + entry.who + "  " + entry.what + "\n";
    if (with_bytes) out += hex_dump(entry.bytes, "    ");
  }
  return out;
}

}  // namespace netchannel::testkit
