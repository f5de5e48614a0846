// What scripts see of a command. The numbers are a contract.
#pragma once

namespace netchannel::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kWrongStream = 3;   // a measured stream was not correct
inline constexpr int kNotConfident = 4;  // under --strict

}  // namespace netchannel::cli
