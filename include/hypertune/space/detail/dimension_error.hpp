// DimensionError: a mistake in one dimension of a space.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::detail {

/// A mistake in one dimension. Readers of files find its position by the name.
class DimensionError : public Error {
 public:
  DimensionError(std::string_view dimension, const std::string& what);
  const std::string& dimension() const { return dimension_; }

 private:
  std::string dimension_;
};

template <class... Args>
[[noreturn]] void fail_dimension(std::string_view name, FormatText<Args...> text, const Args&... args) {
  throw DimensionError(name, detail::format(text, args...));
}

}  // namespace hypertune::inline v0::detail
