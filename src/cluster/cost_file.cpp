// CostFile: what the machines of an experiment have cost.
#include <hypertune/cluster/cost_file.hpp>
#include <hypertune/cluster/detail/files.hpp>
#include <hypertune/cluster/detail/json.hpp>

#include <boost/json.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::cluster {
namespace detail {

static json::object cost_object(const CostReport& report) {
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

static double amount_of(const json::object& object, std::string_view key) {
  const double number = number_in(object, key);
  return std::isfinite(number) && number >= 0 ? number : 0;
}

static CostReport cost_of(const json::value* value) {
  CostReport report;
  if (value == nullptr || !value->is_object()) return report;
  const auto& object = value->get_object();
  if (const auto currency = text_of(object, "currency"); !currency.empty()) report.currency = currency;
  each_object(object, "lines", [&](const json::object& line) {
    const bool spot = flag_in(line, "spot");
    report.add(text_of(line, "type"), spot, amount_of(line, "hours"), amount_of(line, "price"),
               amount_of(line, "on_demand"), false);
    for (auto& kept : report.lines)  // add() counts one machine
      if (kept.node_type == text_of(line, "type") && kept.spot == spot && kept.price == amount_of(line, "price"))
        kept.machines += static_cast<int>(std::min(amount_of(line, "machines"), 1e6)) - 1;
  });
  return report;
}

static CostLine* same_kind(CostReport& report, const CostLine& line) {
  for (auto& other : report.lines)
    if (other.node_type == line.node_type && other.spot == line.spot && other.price == line.price) return &other;
  return nullptr;
}

// Adds `more` to the report (sign 1) or subtracts it (-1).
static void combine(CostReport& report, const CostReport& more, int sign) {
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

static json::value content_of(const std::filesystem::path& file) {
  const auto text = read_file(file);
  return text ? parse_json(*text).value_or(nullptr) : nullptr;
}

static std::filesystem::path cost_file_in(const std::filesystem::path& directory) { return directory / "cost.json"; }

}  // namespace detail

std::string cost_text(const CostReport& report) { return boost::json::serialize(detail::cost_object(report)); }

CostFile::CostFile(const std::filesystem::path& directory, const std::string& cluster, const CostReport& so_far)
    : file_(detail::cost_file_in(directory)), cluster_(cluster), baseline_(so_far) {
  earlier_.currency = so_far.currency;
  const auto content = detail::content_of(file_);
  if (!content.is_object()) return;
  const auto& object = content.get_object();
  // If the file is of another cluster, or its last run ended properly, its total is final.
  if (detail::text_of(object, "cluster") == cluster && detail::flag_in(object, "open")) {
    earlier_ = detail::cost_of(object.if_contains("earlier"));
    baseline_ = detail::cost_of(object.if_contains("baseline"));
  } else {
    earlier_ = detail::cost_of(object.if_contains("total"));
  }
}

CostReport CostFile::update(const CostReport& so_far, bool ended) {
  CostReport total = so_far;
  detail::combine(total, baseline_, -1);
  detail::combine(total, earlier_, 1);
  boost::json::object object{{"cluster", cluster_}, {"open", !ended}, {"total", detail::cost_object(total)}};
  if (!ended) {
    object["earlier"] = detail::cost_object(earlier_);
    object["baseline"] = detail::cost_object(baseline_);
  }
  detail::replace_file(file_, boost::json::serialize(object) + "\n");
  return total;
}

std::optional<CostReport> CostFile::read(const std::filesystem::path& directory) {
  const auto content = detail::content_of(detail::cost_file_in(directory));
  if (!content.is_object()) return std::nullopt;
  const auto* total = content.get_object().if_contains("total");
  if (total == nullptr || !total->is_object()) return std::nullopt;
  return detail::cost_of(total);
}

}  // namespace hypertune::inline v0::cluster
