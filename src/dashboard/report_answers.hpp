// The answers that a report contains.
#pragma once

#include "api.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::dashboard {

/// Collects the answers to the requests that the page would make, within a size limit.
class ReportAnswers {
 public:
  ReportAnswers(const Experiments& experiments, CostText cost, std::size_t room);

  /// A JSON object of requests and answers, and of what was left out. It contains no '<'.
  std::string take();

 private:
  using Parameters = std::vector<std::pair<std::string, std::string>>;

  /// Makes a request, and stores a valid answer under `keep` (or under the request itself) if there is room for it.
  bool ask(const std::string& path, const Parameters& parameters, const Parameters* keep = nullptr);
  bool put(const std::string& key, std::string_view answer);
  void add(Followed& followed, std::size_t room);
  void add_overview(const std::string& id);
  void add_charts(Followed& followed);
  void add_trials(Followed& followed, std::size_t sample);

  Api api_;
  std::string text_;
  std::size_t end_ = 0;  // the size that text_ may reach
  std::vector<std::pair<std::string, std::vector<std::string>>> left_out_;
};

/// The key of a request, with its parameters in order: the same as keyOf() of the page.
std::string request_key(const std::string& path, std::vector<std::pair<std::string, std::string>> parameters);

}  // namespace hypertune::inline v0::dashboard
