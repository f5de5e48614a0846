// CLI11's help, wrapped at 80 columns: option names on the left, what they do on the right, whatever the
// terminal.
#pragma once

#include <CLI/CLI.hpp>

namespace netchannel::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() {
    column_width(kColumn);
    label("Subcommands", "Commands");
    label("Positionals", "Arguments");
  }
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;

 private:
  static constexpr std::size_t kColumn = 26;
  static constexpr std::size_t kWidth = 80;
  static std::string entry(const std::string& name, const std::string& description);
};

}  // namespace netchannel::cli
