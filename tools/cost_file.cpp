#include "cost_file.hpp"

#include <hypertune/cluster/detail/files.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace hypertune::command {

namespace {

namespace json = boost::json;
using cluster::CostLine;
using cluster::CostReport;

json::object object_of(const CostReport& report) {
  json::array lines;
  for (const auto& line : report.lines)
    lines.push_back(json::object{{"type", line.node_type},
                                 {"spot", line.spot},
                                 {"machines", line.machines},
                                 {"hours", line.hours},
                                 {"price", line.price},
                                 {"on_demand", line.on_demand}});
  return {{"currency", report.currency}, {"lines", std::move(lines)}};
}

double number_of(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  if (value == nullptr || !value->is_number()) return 0;
  const double number = value->to_number<double>();
  return std::isfinite(number) && number >= 0 ? number : 0;
}
std::string text_of(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

CostReport report_of(const json::value* value) {
  CostReport report;
  if (value == nullptr || !value->is_object()) return report;
  const auto& object = value->get_object();
  if (const auto currency = text_of(object, "currency"); !currency.empty()) report.currency = currency;
  const auto* lines = object.if_contains("lines");
  if (lines == nullptr || !lines->is_array()) return report;
  for (const auto& each : lines->get_array()) {
    if (!each.is_object()) continue;
    const auto& line = each.get_object();
    const auto* spot = line.if_contains("spot");
    report.add(text_of(line, "type"), spot != nullptr && spot->is_bool() && spot->get_bool(), number_of(line, "hours"),
               number_of(line, "price"), number_of(line, "on_demand"), false);
    for (auto& kept : report.lines)  // add() counts one machine
      if (kept.node_type == text_of(line, "type") &&
          kept.spot == (spot != nullptr && spot->is_bool() && spot->get_bool()) &&
          kept.price == number_of(line, "price"))
        kept.machines += static_cast<int>(std::min(number_of(line, "machines"), 1e6)) - 1;
  }
  return report;
}

CostLine* same_kind(CostReport& report, const CostLine& line) {
  for (auto& other : report.lines)
    if (other.node_type == line.node_type && other.spot == line.spot && other.price == line.price) return &other;
  return nullptr;
}

// `more` is added (sign 1) or taken away (-1).
void combine(CostReport& report, const CostReport& more, int sign) {
  for (const auto& line : more.lines) {
    auto* mine = same_kind(report, line);
    if (mine == nullptr) {
      if (sign < 0) continue;
      report.lines.push_back(line);
      continue;
    }
    mine->hours = std::max(0.0, mine->hours + sign * line.hours);
    mine->machines = std::max(0, mine->machines + sign * line.machines);
  }
  std::erase_if(report.lines, [](const CostLine& line) { return line.hours <= 0 && line.machines <= 0; });
}

json::value content_of(const std::filesystem::path& file) {
  const auto text = cluster::detail::read_file(file);
  if (!text) return nullptr;
  boost::system::error_code error;
  auto value = json::parse(*text, error);
  return error ? json::value() : value;
}

std::filesystem::path file_in(const std::filesystem::path& directory) { return directory / "cost.json"; }

}  // namespace

CostFile::CostFile(const std::filesystem::path& directory, const std::string& cluster, const CostReport& so_far)
    : file_(file_in(directory)), cluster_(cluster), baseline_(so_far) {
  earlier_.currency = so_far.currency;
  const auto content = content_of(file_);
  if (!content.is_object()) return;
  const auto& object = content.get_object();
  const auto* open = object.if_contains("open");
  // Of another cluster, or ended in order: what there was is what it cost.
  if (text_of(object, "cluster") == cluster && open != nullptr && open->is_bool() && open->get_bool()) {
    earlier_ = report_of(object.if_contains("earlier"));
    baseline_ = report_of(object.if_contains("baseline"));
  } else {
    earlier_ = report_of(object.if_contains("total"));
  }
}

CostReport CostFile::update(const CostReport& so_far, bool ended) {
  CostReport total = so_far;
  combine(total, baseline_, -1);
  combine(total, earlier_, 1);
  json::object object{{"cluster", cluster_}, {"open", !ended}, {"total", object_of(total)}};
  if (!ended) {
    object["earlier"] = object_of(earlier_);
    object["baseline"] = object_of(baseline_);
  }
  cluster::detail::replace_file(file_, json::serialize(object) + "\n");
  return total;
}

std::optional<CostReport> CostFile::read(const std::filesystem::path& directory) {
  const auto content = content_of(file_in(directory));
  if (!content.is_object()) return std::nullopt;
  const auto* total = content.get_object().if_contains("total");
  if (total == nullptr || !total->is_object()) return std::nullopt;
  return report_of(total);
}

std::string cost_line(const std::filesystem::path& directory, const Results& results) {
  const auto report = CostFile::read(directory);
  if (!report) return {};
  double busy = 0;
  for (const auto& host : results.hosts()) busy += host.busy;
  const auto repeated = results.repeated_steps();
  return fmt::format("cost: {} on {} machine{}; {:.2f} h in trials, {} step{} done twice", report->summary(),
                     report->machines(), report->machines() == 1 ? "" : "s", busy / 3600, repeated,
                     repeated == 1 ? "" : "s");
}

std::string cost_json(const std::filesystem::path& directory, const Results& results) {
  const auto report = CostFile::read(directory);
  if (!report) return "null";
  double busy = 0;
  for (const auto& host : results.hosts()) busy += host.busy;
  json::object object = object_of(*report);
  object["hours"] = report->hours();
  object["total"] = report->cost();
  object["saved"] = report->saved();
  object["complete"] = report->complete();
  object["machines"] = report->machines();
  object["trial_hours"] = busy / 3600;
  object["repeated_steps"] = results.repeated_steps();
  return json::serialize(object);
}

}  // namespace hypertune::command
