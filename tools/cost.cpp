#include "cost.hpp"

#include <hypertune/cluster/cost_file.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <string>

namespace hypertune::inline v0::command {

using cluster::CostFile;

namespace {

double trial_hours(const Results& results) {
  double busy = 0;
  for (const auto& host : results.hosts()) busy += host.busy;
  return busy / 3600;
}

}  // namespace

std::string cost_line(const std::filesystem::path& directory, const Results& results) {
  const auto report = CostFile::read(directory);
  if (!report) return {};
  const auto repeated = results.repeated_steps();
  return fmt::format("cost: {} on {} machine{}; {:.2f} h in trials, {} step{} done twice", report->summary(),
                     report->machines(), report->machines() == 1 ? "" : "s", trial_hours(results), repeated,
                     repeated == 1 ? "" : "s");
}

std::string cost_json(const std::filesystem::path& directory, const Results& results) {
  const auto report = CostFile::read(directory);
  if (!report) return "null";
  auto value = boost::json::parse(cluster::cost_text(*report));
  auto& object = value.as_object();
  object["hours"] = report->hours();
  object["total"] = report->cost();
  object["saved"] = report->saved();
  object["complete"] = report->complete();
  object["machines"] = report->machines();
  object["trial_hours"] = trial_hours(results);
  object["repeated_steps"] = results.repeated_steps();
  return boost::json::serialize(value);
}

std::string cost_brief(const std::filesystem::path& directory) {
  const auto report = CostFile::read(directory);
  if (!report) return "null";
  double rate = 0;
  for (const auto& line : report->lines) rate += line.running * line.price;
  boost::json::object brief{{"spent", report->cost()}, {"currency", report->currency}, {"budget", nullptr}};
  brief["rate"] = rate > 0 ? boost::json::value(rate) : boost::json::value();
  return boost::json::serialize(brief);
}

}  // namespace hypertune::inline v0::command
