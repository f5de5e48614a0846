#include "report/svg_scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace netchannel::report {
namespace {

constexpr double kRoom = 0.05;     // beyond a linear range, of its width
constexpr double kLogRoom = 1.12;  // beyond a logarithmic one, a factor

double transformed(Scale scale, double value) {
  if (scale == Scale::linear) return value;
  if (scale == Scale::percentile) return -std::log10(1 - value / 100);
  return std::log10(value);
}

struct Prefix {
  double scale;
  const char* name;
};
Prefix prefix_of(double value) {
  const double size = std::abs(value);
  if (size >= 1e9) return {1e9, "G"};
  if (size >= 1e6) return {1e6, "M"};
  if (size >= 1e3) return {1e3, "k"};
  return {1, ""};
}

std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// 1, 2 or 5 times a power of ten, the smallest that is not below.
double nice_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * 0.999999) return factor * power;
  }
  return 10 * power;
}

}  // namespace

void Range::add(double value) {
  low = empty ? value : std::min(low, value);
  high = empty ? value : std::max(high, value);
  empty = false;
}

bool fits(Scale scale, double value) {
  if (!std::isfinite(value)) return false;
  if (scale == Scale::linear) return true;
  if (scale == Scale::percentile) return value >= 0 && value < 100;
  return value > 0;
}

Mapping::Mapping(const Axis& axis, const Range& range, double from, double to)
    : axis_(axis), low_(range.low), high_(range.high), from_(from), to_(to) {
  const bool none = range.empty;
  switch (axis.scale) {
    case Scale::linear: {
      if (none) high_ = low_ + 1;
      if (axis.from_zero) low_ = std::min(low_, 0.0);
      const double width = high_ > low_ ? high_ - low_ : std::max(std::abs(high_) * 0.2, 1e-9);
      if (!axis.from_zero || low_ < 0) low_ -= width * kRoom;
      high_ += width * kRoom;
      break;
    }
    case Scale::log2:
    case Scale::log10: {
      if (none) low_ = high_ = 1;
      // Where little lies between them, some of what is around shows how little.
      const double room = high_ / low_ < 1.3 ? 1.3 : std::max(kLogRoom, std::pow(high_ / low_, kRoom / 2));
      low_ /= room;
      high_ *= room;
      break;
    }
    case Scale::percentile:
      low_ = 0;
      high_ = none ? 99 : std::max(high_, 90.0);
      break;
  }
}

double Mapping::at(double value) const {
  const double low = transformed(axis_.scale, low_), high = transformed(axis_.scale, high_);
  return from_ + (to_ - from_) * (transformed(axis_.scale, value) - low) / (high - low);
}

double Mapping::clamped(double value) const { return at(std::clamp(value, low_, high_)); }

bool Mapping::holds(double value) const {
  return fits(axis_.scale, value) && value >= low_ * 0.999999 && value <= high_ * 1.000001;
}

std::vector<Tick> Mapping::linear_ticks(int most) const {
  const double step = nice_step((high_ - low_) / most);
  const Prefix prefix = prefix_of(std::max(std::abs(low_), std::abs(high_)));
  const double shown = step / prefix.scale;
  const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(shown) - 1e-9)), 0, 6);
  std::vector<Tick> out;
  for (double n = std::ceil(low_ / step - 1e-9); n * step <= high_ * (1 + 1e-9); ++n) {
    const double value = n == 0 ? 0 : n * step;
    out.push_back(
        {value, value == 0 ? "0" : fmt::format("{:.{}f}{}", value / prefix.scale, digits, prefix.name)});
    if (out.size() > 50) break;
  }
  return out;
}

std::vector<Tick> Mapping::logarithmic_ticks(int most) const {
  const std::array<std::vector<double>, 4> kGrids = {{{1}, {1, 3}, {1, 2, 5}, {1, 1.5, 2, 3, 5, 7}}};
  std::vector<Tick> best;
  for (const std::vector<double>& grid : kGrids) {
    std::vector<Tick> found;
    for (int power = static_cast<int>(std::floor(std::log10(low_))); std::pow(10.0, power) <= high_;
         ++power) {
      for (const double factor : grid) {
        const double value = factor * std::pow(10.0, power);
        if (value >= low_ && value <= high_) found.push_back({value, short_number(value)});
      }
    }
    if (found.size() <= static_cast<std::size_t>(most) || best.size() < 2) best = std::move(found);
  }
  // Within less than a factor of about two the steps of a ruler say more.
  return best.size() >= 3 ? best : linear_ticks(most);
}

std::vector<Tick> Mapping::ticks(int most) const {
  if (!axis_.at.empty()) {
    std::vector<Tick> out;
    for (const double value : axis_.at) {
      if (holds(value)) out.push_back({value, count_label(value)});
    }
    return out;
  }
  if (axis_.scale == Scale::linear) return linear_ticks(most);
  if (axis_.scale != Scale::percentile) return logarithmic_ticks(most);
  std::vector<Tick> out;
  for (const double value : {0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999}) {
    if (holds(value)) out.push_back({value, fmt::format("{:g} %", value)});
  }
  return out;
}

std::string short_number(double value) {
  if (value == 0) return "0";
  // 999.96k would be written 1000k.
  double rounded = value;
  if (std::isfinite(value)) {
    const double scale = std::pow(10.0, 2 - std::floor(std::log10(std::abs(value))));
    if (std::isfinite(scale) && scale > 0) rounded = std::round(value * scale) / scale;
  }
  const Prefix prefix = prefix_of(rounded);
  const double shown = rounded / prefix.scale, size = std::abs(shown);
  const int digits = size >= 100     ? 0
                     : size >= 10    ? 1
                     : size >= 1     ? 2
                     : size >= 0.1   ? 3
                     : size >= 0.001 ? 4
                                     : 6;
  return without_trailing_zeros(fmt::format("{:.{}f}", shown, digits)) + prefix.name;
}

std::string count_label(double value) {
  constexpr double kKi = 1024;
  if (value >= 8 * kKi && std::fmod(value, kKi * kKi) == 0) return fmt::format("{:.0f}Mi", value / kKi / kKi);
  if (value >= 8 * kKi && std::fmod(value, kKi) == 0) return fmt::format("{:.0f}Ki", value / kKi);
  if (value < 1e5 && value == std::floor(value)) return fmt::format("{:.0f}", value);
  return short_number(value);
}

}  // namespace netchannel::report
