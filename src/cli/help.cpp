#include "cli/help.hpp"

namespace netchannel::cli {
namespace {

// Breaks at spaces; lines after the first begin with `indent` spaces. `column`: where the first begins.
std::string wrap(const std::string& text, std::size_t column, std::size_t indent, std::size_t width) {
  std::string out;
  bool fresh = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (!fresh && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
      fresh = true;
    }
    if (!fresh) out += ' ';
    out += word;
    column += word.size() + (fresh ? 0 : 1);
    fresh = false;
  }
  return out;
}

}  // namespace

std::string HelpFormatter::entry(const std::string& name, const std::string& description) {
  std::string line = "  " + name;
  if (line.size() + 1 >= kColumn) {
    line += "\n" + std::string(kColumn, ' ');
  } else {
    line += std::string(kColumn - line.size(), ' ');
  }
  return line + wrap(description, kColumn, kColumn, kWidth) + "\n";
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  if (is_positional) return entry(option->get_option_text(), make_option_desc(option));
  return entry(make_option_name(option, false) + make_option_opts(option), make_option_desc(option));
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  return option->get_option_text().empty() ? "" : " " + option->get_option_text();
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description());
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrap(app->get_description(), 0, 0, kWidth) + "\n";
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  std::string out = "usage: " + name + " [OPTIONS]";
  for (const CLI::Option* option :
       app->get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    const std::string text = option->get_option_text();
    out += option->get_required() ? " " + text : " [" + text + "]";
  }
  for (const CLI::Option* option :
       app->get_options([](const CLI::Option* o) { return !o->get_positional() && o->get_required(); })) {
    out += " " + make_option_name(option, false) + make_option_opts(option);
  }
  if (!app->get_subcommands({}).empty()) out += " COMMAND";
  return wrap(out, 0, 7, kWidth) + "\n";
}

}  // namespace netchannel::cli
