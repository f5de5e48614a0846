// The grammar of packet scripts but for the packets themselves (packet_script_packets.cpp): options of the
// script, times, calls and their values, commands, assertions, files that are included.
#include "testkit/packet_script_parse.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace netchannel::testkit::script {
namespace {

constexpr int kMaxIncludeDepth = 4;

struct Place {
  std::string name;    // of the file, for messages
  std::string folder;  // where it looks for others
  int depth = 0;
};

std::string trimmed(const std::string& text) {
  const auto from = text.find_first_not_of(" \t\r\n");
  if (from == std::string::npos) return "";
  return text.substr(from, text.find_last_not_of(" \t\r\n") - from + 1);
}

// One line, however many it took, without comments.
std::string one_line(std::string_view text) {
  std::string out;
  bool space = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool comment = text[i] == '#' || text.substr(i).starts_with("//");
    if (comment) i = std::min(text.find('\n', i), text.size() - 1);
    const char c = comment ? '\n' : text[i];
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (blank) {
      space = true;
      continue;
    }
    if (space && !out.empty()) out += ' ';
    space = false;
    out += c;
  }
  return out;
}

// "--only=ours (three minutes of real time)"
void parse_only(Cursor& in, const std::string& value, Script& script) {
  const auto open = value.find('(');
  const std::string who = trimmed(value.substr(0, open));
  if (who == "ours") {
    script.only = Whose::ours;
  } else if (who == "linux") {
    script.only = Whose::kernel;
  } else {
    return in.fail("--only is \"ours\" or \"linux\", not \"" + who + "\"");
  }
  const auto close = value.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open + 2)
    return in.fail("--only needs a reason in parentheses");
  script.why_only = value.substr(open + 1, close - open - 1);
}

void parse_ip_version(Cursor& in, const std::string& value, Script& script) {
  script.v4 = value == "ipv4";
  script.v6 = value == "ipv6";
  if (!script.v4 && !script.v6) in.fail("--ip_version is \"ipv4\" or \"ipv6\", not \"" + value + "\"");
}

void parse_option(Cursor& in, Script& script) {
  const std::string name = in.token("=");
  in.need("=");
  std::string line = in.rest_of_line();
  const std::string value = trimmed(line.substr(0, std::min(line.find("//"), line.find('#'))));
  const auto number = [&]() -> std::uint32_t {
    Cursor digits(value);
    const std::uint32_t out = digits.number(name);
    if (digits.failed() || !digits.at_end()) in.fail("--" + name + " needs a number, not \"" + value + "\"");
    return out;
  };
  if (name == "mtu") {
    script.mtu = number();
    if (script.mtu < 68 || script.mtu > 65000) in.fail("--mtu must be 68 to 65000");
  } else if (name == "tolerance_usecs") {
    script.tolerance = std::chrono::microseconds(number());
  } else if (name == "ip_version") {
    parse_ip_version(in, value, script);
  } else if (name == "tcp_ts_tick_usecs") {
    if (number() != 1000) in.fail("--tcp_ts_tick_usecs: the clock ticks each 1000 us");
  } else if (name == "only") {
    parse_only(in, value, script);
  } else {
    in.fail("no option --" + name + " (mtu, ip_version, tolerance_usecs, only)");
  }
}

EventTime parse_time(Cursor& in) {
  EventTime time;
  if (in.take("*")) {
    time.kind = EventTime::Kind::any;
    return time;
  }
  time.kind = in.take("+") ? EventTime::Kind::relative : EventTime::Kind::absolute;
  time.at = in.seconds();
  if (in.take("...")) {
    in.take("+");
    time.ends = in.seconds();
    if (*time.ends < time.at) in.fail("a call cannot end before it begins");
  } else if (in.take("~")) {
    in.take("+");
    time.latest = in.seconds();
    if (*time.latest < time.at) in.fail("the range of times is empty");
  }
  return time;
}

Value parse_value(Cursor& in);

// "[1, 2]", "{onoff=1, linger=0}"
Value parse_items(Cursor& in, std::string_view close) {
  Value out;
  out.kind = close == "]" ? Value::Kind::list : Value::Kind::fields;
  while (!in.failed() && !in.sees(close)) {
    Value item = parse_value(in);
    std::string name;
    if (in.take("=")) {
      if (item.words.size() != 1) in.fail("expected a name before \"=\"");
      if (!item.words.empty()) name = item.words[0];
      item = parse_value(in);
    }
    out.items.push_back(std::move(item));
    out.names.push_back(name);
    if (!in.take(",")) break;
  }
  in.need(close);
  return out;
}

// "O_RDWR|O_NONBLOCK", "0x2"
Value parse_words(Cursor& in) {
  Value out;
  out.kind = Value::Kind::words;
  do {
    std::string word = in.word();
    if (word.empty()) word = std::to_string(in.number("a value"));
    out.words.push_back(std::move(word));
  } while (!in.failed() && in.take("|"));
  return out;
}

Value parse_value(Cursor& in) {
  if (in.take("...")) return {};
  if (in.take("[")) return parse_items(in, "]");
  if (in.take("{")) return parse_items(in, "}");
  Value out;
  if (in.take("\"")) {
    out.kind = Value::Kind::text;
    out.text = in.until("\"");
    return out;
  }
  const bool negative = in.take("-");
  const char first = in.peek();
  if (!negative && (first < '0' || first > '9')) return parse_words(in);
  out.kind = Value::Kind::number;
  out.number = in.number("a value");
  if (negative) out.number = -out.number;
  if (!in.sees("|")) return out;
  in.need("|");
  Value words = parse_words(in);
  words.words.push_back(std::to_string(out.number));
  return words;
}

CallEvent parse_call(Cursor& in) {
  CallEvent call;
  call.name = in.word();
  in.need("(");
  while (!in.failed() && !in.sees(")")) {
    call.arguments.push_back(parse_value(in));
    if (!in.take(",")) break;
  }
  in.need(")");
  in.need("=");
  call.result = parse_value(in);
  if (in.failed()) return call;
  if (in.peek() == 'E') call.error = in.word();
  if (in.take("(")) in.until(")");
  const bool failure = call.result.kind == Value::Kind::number && call.result.number < 0;
  if (failure != !call.error.empty()) in.fail("a result of -1 needs an error, and only that");
  return call;
}

// What the public packetdrill suite begins its scripts with, as far as it differs from the runner's defaults.
constexpr std::array<std::pair<const char*, const char*>, 3> kSuiteDefaults{
    {{"tcp_rmem", "4096 540000 15728640"}, {"tcp_wmem", "4096 262144 4194304"}, {"tcp_ecn", "0"}}};

// "net.ipv4.tcp_wmem=\"4096 20000 20000\"" from the name on. False: it is no setting.
bool parse_setting(Cursor& code, const std::string& word, CommandEvent& command) {
  const auto equals = word.find('=');
  if (equals == std::string::npos) return false;
  for (const std::string_view prefix : {"net.ipv4.", "/proc/sys/net/ipv4/"}) {
    if (!word.starts_with(prefix)) continue;
    std::string value = word.substr(equals + 1);
    if (value.starts_with('"'))
      value = value.ends_with('"') && value.size() > 1 ? value.substr(1, value.size() - 2)
                                                       : value.substr(1) + code.until("\"");
    command.settings.emplace_back(word.substr(prefix.size(), equals - prefix.size()), value);
    return true;
  }
  return false;
}

// A shell command in backquotes: nothing but settings is understood.
CommandEvent parse_command(Cursor& in) {
  CommandEvent command;
  const std::string text = in.until("`");
  Cursor code(text);
  while (!code.at_end()) {
    if (code.take(";") || code.take("\\")) continue;
    const std::string word = code.token(";");
    const bool tool = word == "sysctl" || word == "-q" || word == "-w" || word == "-e" ||
                      word.ends_with("set_sysctls.py") || word.find("/sysctl_restore_") != std::string::npos;
    if (tool || parse_setting(code, word, command)) continue;
    if (!word.ends_with("defaults.sh")) {
      code.fail("only \"sysctl net.ipv4.NAME=VALUE\" is understood, not \"" + word + "\"");
      break;
    }
    command.settings.insert(command.settings.end(), kSuiteDefaults.begin(), kSuiteDefaults.end());
  }
  if (code.failed()) in.fail(code.reason());
  return command;
}

std::vector<AssertEvent> parse_asserts(Cursor& in) {
  std::vector<AssertEvent> out;
  const std::string body = in.until("}%");
  Cursor code(body);
  while (!code.at_end()) {
    if (code.take(";")) continue;
    if (code.word() != "assert") {
      code.fail("only \"assert A == B\" is understood between %{ and }%");
      break;
    }
    AssertEvent assertion;
    const bool closed = code.take("(");
    assertion.left = code.token("=<>!,;)");
    assertion.op = code.token("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789,;)");
    assertion.right = code.token(",;)");
    if (closed) code.need(")");
    if (code.take(",")) code.rest_of_line();
    const std::string_view op = assertion.op;
    const bool known = op == "==" || op == "!=" || op == "<" || op == ">" || op == "<=" || op == ">=";
    if (!known || assertion.left.empty() || assertion.right.empty())
      code.fail("an assertion compares two values with == != < > <= >=");
    out.push_back(std::move(assertion));
  }
  if (code.failed()) in.fail(code.reason());
  if (out.empty()) in.fail("nothing is asserted between %{ and }%");
  return out;
}

// One line of the script; several events if it is a block of assertions.
void parse_event(Cursor& in, Whose whose, const Place& place, Script& script) {
  Event event;
  in.skip();
  const std::size_t from = in.position();
  event.file = place.name;
  event.line = in.line();
  event.whose = whose;
  const char first = in.peek();
  if (first != '`' && first != '%') event.time = parse_time(in);
  std::vector<AssertEvent> assertions;
  if (in.sees("<") || in.sees(">")) {
    event.what = parse_packet(in);
  } else if (in.take("`")) {
    event.what = parse_command(in);
  } else if (in.take("%{")) {
    assertions = parse_asserts(in);
  } else {
    const char letter = in.peek();
    const bool name = (letter >= 'a' && letter <= 'z') || letter == '_';
    if (!name) in.fail("expected a packet, a call, a command or an assertion before " + in.here());
    if (!in.failed()) event.what = parse_call(in);
  }
  const bool call = std::holds_alternative<CallEvent>(event.what);
  if (event.time.ends && !call) in.fail("\"...\" is for calls");
  const auto* packet = std::get_if<PacketEvent>(&event.what);
  const bool sent = packet != nullptr && packet->sent;
  if (event.time.latest && !sent) in.fail("a range of times is for packets that are sent");
  if (event.time.kind == EventTime::Kind::any && !sent) in.fail("\"*\" is for packets that are sent");
  if (in.failed()) return;
  event.text = one_line(in.slice(from));
  if (assertions.empty()) return script.events.push_back(std::move(event));
  for (AssertEvent& assertion : assertions) {
    event.what = std::move(assertion);
    script.events.push_back(event);
    event.time = EventTime{};  // the others of the block at the same time
  }
}

std::optional<std::string> contents(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

std::optional<ScriptError> parse_into(std::string_view text, const Place& place, Script& script);

std::optional<ScriptError> include(Cursor& in, const Place& place, Script& script) {
  const int line = in.line();
  in.need("\"");
  const std::string name = in.until("\"");
  if (in.failed()) return std::nullopt;
  const std::filesystem::path path = std::filesystem::path(place.folder) / name;
  const auto text = contents(path);
  if (!text) return ScriptError{place.name, line, "there is no file " + path.string()};
  if (place.depth >= kMaxIncludeDepth) return ScriptError{place.name, line, "too many files include others"};
  return parse_into(*text, {name, path.parent_path(), place.depth + 1}, script);
}

std::optional<ScriptError> parse_into(std::string_view text, const Place& place, Script& script) {
  Cursor in(text);
  while (!in.at_end()) {
    if (in.take("--")) {
      if (!script.events.empty()) in.fail("options stand before the first event");
      if (!in.failed()) parse_option(in, script);
      continue;
    }
    if (in.take("include")) {
      if (auto error = include(in, place, script)) return error;
      continue;
    }
    Whose whose = Whose::both;
    if (in.take("ours:")) whose = Whose::ours;
    if (in.take("linux:")) whose = Whose::kernel;
    parse_event(in, whose, place, script);
  }
  if (in.failed()) return ScriptError{place.name, in.error_line(), in.reason()};
  return std::nullopt;
}

}  // namespace

tl::expected<Script, ScriptError> parse_script(std::string_view text, const std::string& name,
                                               const std::string& folder) {
  Script script;
  script.name = name;
  if (auto error = parse_into(text, {name, folder, 0}, script)) return tl::unexpected(*error);
  if (script.events.empty()) return tl::unexpected(ScriptError{name, 1, "the script has no events"});
  return script;
}

tl::expected<Script, ScriptError> read_script(const std::string& path) {
  const auto text = contents(path);
  if (!text) return tl::unexpected(ScriptError{path, 0, "there is no such file"});
  return parse_script(*text, path, std::filesystem::path(path).parent_path());
}

}  // namespace netchannel::testkit::script
