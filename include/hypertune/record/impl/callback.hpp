// Callbacks: definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/record/detail/callbacks.hpp>

#include <boost/core/demangle.hpp>

#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <typeinfo>
#include <vector>

namespace hypertune::inline v0::detail {

std::string name_of(const std::type_info& type) { return boost::core::demangle(type.name()); }

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

template <class Call>
void Callbacks::each(const Call& call) {
  std::erase_if(callbacks_, [&](AnyCallback& callback) {
    try {
      call(callback);
      return false;
    } catch (const std::exception& e) { disabled(callback, e.what()); } catch (...) {
      disabled(callback, "it threw something that is no std::exception");
    }
    return true;
  });
}

void Callbacks::open(const std::filesystem::path& directory) {
  each([&](AnyCallback& callback) { callback.open(directory); });
}

void Callbacks::batch(std::span<const Record> records) {
  each([&](AnyCallback& callback) { callback.batch(records); });
}

void Callbacks::disabled(const AnyCallback& callback, const char* why) {
  if (notice_)
    notice_(detail::format("callback {} failed and is not called any more (the experiment goes on): {}",
                           callback.name(), why));
}

AnyCallback::AnyCallback(const AnyCallback& other) = default;
AnyCallback::AnyCallback(AnyCallback&& other) noexcept = default;
AnyCallback& AnyCallback::operator=(const AnyCallback& other) = default;
AnyCallback& AnyCallback::operator=(AnyCallback&& other) noexcept = default;
AnyCallback::~AnyCallback() = default;

}  // namespace hypertune::inline v0
