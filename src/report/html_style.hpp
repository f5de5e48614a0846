// The page's style sheet: light and dark, narrow and wide, on paper.
#pragma once

#include <string_view>

namespace netchannel::report {

std::string_view html_style();

}  // namespace netchannel::report
