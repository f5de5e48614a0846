// A place in a script's text. The first thing that does not fit is kept with its line; from then on nothing
// moves, every question is answered with a default, and the parser's loops end, so that no step of it has to
// look for errors.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "netchannel/time.hpp"

namespace netchannel::testkit::script {

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool failed() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }
  int error_line() const { return line_at(error_at_); }
  void fail(const std::string& reason) {
    if (failed()) return;
    reason_ = reason;
    error_at_ = at_;
  }

  std::size_t position() const { return at_; }
  int line() const { return line_at(at_); }
  std::string_view slice(std::size_t from) const { return text_.substr(from, at_ - from); }

  // Spaces, newlines and comments: "//" and "#" to the end of the line, "/* */".
  void skip() {
    while (!failed() && at_ < text_.size()) {
      if (is_space(text_[at_])) {
        ++at_;
      } else if (text_[at_] == '#' || rest().starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (rest().starts_with("/*")) {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) return fail("a comment without an end");
        at_ = end + 2;
      } else {
        return;
      }
    }
  }
  bool at_end() {
    skip();
    return failed() || at_ >= text_.size();
  }
  // After skip(); 0 at the end.
  char peek() {
    skip();
    return failed() || at_ >= text_.size() ? '\0' : text_[at_];
  }
  bool sees(std::string_view what) {
    skip();
    return !failed() && rest().starts_with(what);
  }
  bool take(std::string_view what) {
    if (!sees(what)) return false;
    at_ += what.size();
    return true;
  }
  void need(std::string_view what) {
    if (!take(what)) fail("expected \"" + std::string(what) + "\" before " + here());
  }

  // A name, or "" if none stands here.
  std::string word() {
    skip();
    const std::size_t from = at_;
    while (!failed() && at_ < text_.size() && (is_word(text_[at_]))) ++at_;
    if (at_ > from && is_digit(text_[from])) at_ = from;
    return std::string(slice(from));
  }
  // All up to a space or one of `stops`.
  std::string token(std::string_view stops = "") {
    skip();
    const std::size_t from = at_;
    while (!failed() && at_ < text_.size() && !is_space(text_[at_]) &&
           stops.find(text_[at_]) == std::string_view::npos)
      ++at_;
    return std::string(slice(from));
  }
  // The raw text up to `end`, which is passed over too.
  std::string until(std::string_view end) {
    if (failed()) return "";
    const std::size_t found = text_.find(end, at_);
    if (found == std::string_view::npos) {
      fail("\"" + std::string(end) + "\" is missing");
      return "";
    }
    std::string out(text_.substr(at_, found - at_));
    at_ = found + end.size();
    return out;
  }
  std::string rest_of_line() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string out(text_.substr(at_, end - at_));
    at_ = end;
    return out;
  }

  // Decimal, or hexadecimal with 0x.
  std::uint32_t number(std::string_view what) {
    skip();
    const bool hex = rest().starts_with("0x");
    const std::string_view digits = hex ? rest().substr(2) : rest();
    std::uint32_t out = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), out, hex ? 16 : 10);
    if (failed() || error != std::errc{}) {
      fail("expected " + std::string(what) + " (a number) before " + here());
      return 0;
    }
    at_ = static_cast<std::size_t>(end - text_.data());
    return out;
  }
  // Seconds with at most nine places: "1", ".05", "0.200".
  Duration seconds() {
    skip();
    std::int64_t ns = 0;
    int places = -1;
    const std::size_t from = at_;
    for (; !failed() && at_ < text_.size() && places < 9; ++at_) {
      const char c = text_[at_];
      if (c == '.' && places < 0 && !rest().starts_with("...")) {
        places = 0;
      } else if (is_digit(c)) {
        ns = ns * 10 + (c - '0');
        if (places >= 0) ++places;
      } else {
        break;
      }
    }
    if (at_ == from) fail("expected a time in seconds before " + here());
    for (places = std::max(places, 0); places < 9; ++places) ns *= 10;
    return Duration{ns};
  }

  // What stands at the cursor, for messages.
  std::string here() {
    if (at_ >= text_.size()) return "the end of the script";
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    return "\"" + std::string(text_.substr(at_, std::min<std::size_t>(end - at_, 40))) + "\"";
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_word(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  std::string_view rest() const { return text_.substr(at_); }
  int line_at(std::size_t at) const {
    int line = 1;
    for (const char c : text_.substr(0, at)) line += c == '\n' ? 1 : 0;
    return line;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string reason_;
  std::size_t error_at_ = 0;
};

}  // namespace netchannel::testkit::script
