// The answers that a report has within it.
#pragma once

#include "api.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::dashboard {

/// Answers by the requests that the page would make for them, within bounds.
class ReportAnswers {
 public:
  ReportAnswers(const Experiments& experiments, CostText cost, std::size_t room);

  /// A JSON object of request and answer, and of what was left out; it has no '<' in it.
  std::string take();

 private:
  using Parameters = std::vector<std::pair<std::string, std::string>>;

  /// Asks, and keeps the answer as that to `keep` (or to the same), where it is one and the room reaches.
  bool ask(const std::string& path, const Parameters& parameters, const Parameters* keep = nullptr);
  bool put(const std::string& key, std::string_view answer);
  void add(Followed& followed, std::size_t room);
  void add_overview(const std::string& id);
  void add_charts(Followed& followed);
  void add_trials(Followed& followed, std::size_t sample);

  Api api_;
  std::string text_;
  std::size_t end_ = 0;  // what text_ may grow to
  std::vector<std::pair<std::string, std::vector<std::string>>> left_out_;
};

/// The name of a request, with its parameters in order: as keyOf() of the page has it.
std::string request_key(const std::string& path, std::vector<std::pair<std::string, std::string>> parameters);

}  // namespace hypertune::inline v0::dashboard
