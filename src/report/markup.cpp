#include "report/markup.hpp"

#include <cstdint>

namespace netchannel::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// The length of the UTF-8 sequence (RFC 3629) that begins here; 0 if there is none. Surrogates, overlong
// forms and U+FFFE, U+FFFF, which XML forbids, are none.
std::size_t sequence_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[at + i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() - at < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) > 0x9F) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) > 0x8F) return 0;
  if (first == 0xEF && byte(1) == 0xBF && byte(2) >= 0xBE) return 0;
  return length;
}

// In DejaVu Sans, the widest of the usual faces.
double width_of(char c) {
  constexpr std::string_view kNarrow = "iljI.,:|'", kSlim = " tfr-[]()/", kWide = "mwMW%";
  if (kNarrow.find(c) != std::string_view::npos) return 3.9;
  if (kSlim.find(c) != std::string_view::npos) return 4.9;
  if (kWide.find(c) != std::string_view::npos) return 11.7;
  return c >= 'A' && c <= 'Z' ? 8.9 : 7.6;
}

bool continues(char c) { return (static_cast<std::uint8_t>(c) & 0xC0) == 0x80; }

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_at(text, at);
    const char c = text[at];
    if (length == 0 || (length == 1 && static_cast<std::uint8_t>(c) < 0x20 && c != '\n' && c != '\t') ||
        c == 0x7F) {
      out += kReplacement;
      ++at;
      continue;
    }
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += text.substr(at, length);
    }
    at += length;
  }
  return out;
}

double text_width(std::string_view text) {
  double sum = 0;
  for (const char c : text) sum += continues(c) ? 0 : width_of(c);
  return sum;
}

std::string shortened(std::string_view text, double width) {
  if (text_width(text) <= width) return std::string(text);
  while (!text.empty() && text_width(text) > width - 10) {
    do text.remove_suffix(1);
    while (!text.empty() && continues(text.back()));
    // What is left may end in the middle of a character.
    if (!text.empty() && static_cast<std::uint8_t>(text.back()) >= 0xC0) text.remove_suffix(1);
  }
  return std::string(text) + "\u2026";
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8 | (at + i < bytes.size() ? static_cast<std::uint8_t>(bytes[at + i]) : 0u);
    }
    for (std::size_t i = 0; i < 4; ++i)
      out += at + i > bytes.size() ? '=' : kDigits[group >> (18 - 6 * i) & 63];
  }
  return out;
}

}  // namespace netchannel::report
