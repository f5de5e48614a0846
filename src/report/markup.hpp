// What HTML and SVG share: text that came from a file or a network made harmless, and a guess of how wide it
// is.
#pragma once

#include <string>
#include <string_view>

namespace netchannel::report {

// For element content and for attributes in double quotes. Control characters that XML forbids, and what is
// not UTF-8, become U+FFFD.
std::string escaped(std::string_view text);

// In a sans-serif face of 12 units, rather too wide than too narrow.
double text_width(std::string_view text);
// With an ellipsis at its end if it has to be.
std::string shortened(std::string_view text, double width);

// Of any bytes, for a data: address (RFC 4648).
std::string base64(std::string_view bytes);

}  // namespace netchannel::report
