// Setting: an option that knows whether the user has set it.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

namespace hypertune::inline v0 {

/// Reads and is assigned like a T. When an experiment is resumed, a Setting that was not set takes its value from the
/// record; one that was set keeps it, even if it equals the default.
template <class T>
class Setting {
 public:
  using value_type = T;

  Setting() : Setting(unset(T{})) {}
  /// A default value that counts as not given.
  static Setting unset(T value) {
    Setting setting(std::move(value));
    setting.given_ = false;
    return setting;
  }
  template <class U>
    requires(std::convertible_to<U &&, T> && !std::same_as<std::remove_cvref_t<U>, Setting>)
  Setting(U&& value) : value_(static_cast<T>(std::forward<U>(value))), given_(true) {}  // NOLINT: implicit on purpose

  operator const T&() const { return value_; }  // NOLINT: implicit on purpose
  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }
  bool given() const { return given_; }

 private:
  T value_;
  bool given_ = false;
};

template <class T>
Setting(T) -> Setting<T>;

}  // namespace hypertune::inline v0
