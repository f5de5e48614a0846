// From values to places on paper, and where the ticks stand.
#pragma once

#include <string>
#include <vector>

#include "report/chart.hpp"

namespace netchannel::report {

struct Tick {
  double value = 0;
  std::string label;
};

// The values that have to fit.
struct Range {
  bool empty = true;
  double low = 0;
  double high = 0;
  void add(double value);
};

// Whether a value has a place on such an axis: finite, positive on a logarithmic one, below 100 as a
// percentile.
bool fits(Scale scale, double value);

class Mapping {
 public:
  // Some room is left beyond the range. `from` and `to` are the places of its ends; `to` may be the smaller.
  Mapping(const Axis& axis, const Range& range, double from, double to);
  double at(double value) const;
  double clamped(double value) const;
  bool holds(double value) const;
  double low() const { return low_; }
  double high() const { return high_; }
  // At most about `most` of them.
  std::vector<Tick> ticks(int most) const;

 private:
  std::vector<Tick> linear_ticks(int most) const;
  std::vector<Tick> logarithmic_ticks(int most) const;

  Axis axis_;
  double low_, high_;  // as values
  double from_, to_;
};

// 950, 12k, 1.25M: for axes and small labels.
std::string short_number(double value);
// Bytes and counts: 1, 1024, 64Ki.
std::string count_label(double value);

}  // namespace netchannel::report
