// Resources: definitions.
#pragma once

#include <hypertune/trial/resources.hpp>

#include <map>
#include <string>
#include <utility>

namespace hypertune::inline v0 {

CustomResources::CustomResources() noexcept = default;
CustomResources::CustomResources(std::map<std::string, double> amounts)
    : std::map<std::string, double>(std::move(amounts)) {}
CustomResources::CustomResources(const CustomResources& other) = default;
CustomResources::CustomResources(CustomResources&& other) noexcept = default;
CustomResources& CustomResources::operator=(const CustomResources& other) = default;
CustomResources& CustomResources::operator=(CustomResources&& other) noexcept = default;
CustomResources::~CustomResources() = default;

bool operator==(const Resources& a, const Resources& b) {
  return a.cpus == b.cpus && a.gpus == b.gpus && a.memory == b.memory && a.custom == b.custom;
}

namespace detail {

bool fits(const std::map<std::string, double>& needs, const std::map<std::string, double>& has) {
  for (const auto& [name, amount] : needs)
    if (const auto found = has.find(name); amount > 0 && (found == has.end() || !fits(amount, found->second)))
      return false;
  return true;
}

}  // namespace detail

}  // namespace hypertune::inline v0
