// Callbacks: the callbacks of one experiment.
#pragma once

#include <hypertune/record/callback.hpp>
#include <hypertune/record/record.hpp>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// The callbacks of one experiment. A callback that throws is named in one notice and not called again; the others and
/// the experiment go on. Not thread-safe.
class Callbacks {
 public:
  using Notice = std::function<void(const std::string&)>;

  Callbacks() = default;
  explicit Callbacks(std::vector<AnyCallback> callbacks, Notice notice = {})
      : callbacks_(std::move(callbacks)), notice_(std::move(notice)) {}

  void open(const std::filesystem::path& directory);
  void batch(std::span<const Record> records);
  std::size_t size() const { return callbacks_.size(); }  ///< number of callbacks that are still called
  bool empty() const { return callbacks_.empty(); }

 private:
  template <class Call>
  void each(const Call& call);
  void disabled(const AnyCallback& callback, const char* why);

  std::vector<AnyCallback> callbacks_;
  Notice notice_;
};

}  // namespace hypertune::inline v0
