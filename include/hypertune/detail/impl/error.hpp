// Errors: definitions.
#pragma once

#include <hypertune/error.hpp>

#include <fmt/format.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

namespace hypertune::inline v0 {

const std::error_category& error_category() noexcept {
  static const struct final : std::error_category {
    const char* name() const noexcept override { return "hypertune"; }
    std::string message(int code) const override { return to_string(static_cast<Errc>(code)); }
  } category;
  return category;
}

std::error_code make_error_code(Errc code) noexcept { return {static_cast<int>(code), error_category()}; }

std::error_code error_code_of(const std::exception_ptr& exception) {
  if (!exception) return {};
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) { return error.code(); } catch (const std::system_error& error) {
    return error.code();
  } catch (const std::bad_alloc&) { return std::make_error_code(std::errc::not_enough_memory); } catch (...) {
    return Errc::experiment;
  }
}

Error::Error(Errc code, const std::string& message) : std::runtime_error(message), code_(code) {}

namespace detail {

void throw_error(Errc code, fmt::string_view format, fmt::format_args args) {
  throw Error(code, fmt::vformat(format, args));
}

}  // namespace detail

}  // namespace hypertune::inline v0
