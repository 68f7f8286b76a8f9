// OldName: an option by the name that it had in an earlier version.
#pragma once

#include <concepts>
#include <optional>
#include <utility>

namespace hypertune::inline v0::detail {

/// A member beside the option that has replaced it: `int max_retries = 0; OldName<int> max_failures = {};`. Who
/// receives the options calls give_to(). Not [[deprecated]] itself, which would warn where the options are copied.
template <class T>
class OldName {
 public:
  OldName() = default;
  template <std::convertible_to<T> U>
  [[deprecated("this option has another name now: its declaration says which")]] OldName(U value)
      : value_(static_cast<T>(value)) {}

  void give_to(T& option) {
    if (value_) option = *std::exchange(value_, std::nullopt);
  }

 private:
  std::optional<T> value_;
};

}  // namespace hypertune::inline v0::detail
