// What was found of another program's experiment, and the readers that find it.
#pragma once

#include <hypertune/record/import.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/space/params.hpp>

#include <boost/json/value.hpp>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::detail::import {

struct ForeignReport {
  std::optional<Seconds> time;
  int step = 0;
  Metrics metrics;
};

struct ForeignTrial {
  std::string name;  // what it was called
  Params params;
  std::optional<TrialState> state;  // none: it had not ended
  std::optional<Seconds> started, ended;
  std::vector<ForeignReport> reports;
  Attributes attributes;
  std::string cause;
};

struct ForeignStudy {
  std::string what, name, searcher;
  const char* name_attribute;
  std::vector<Objective> objectives;
  std::map<std::string, std::string> space;  // by parameter, as SearchSpace::describe() has it
  std::vector<ForeignTrial> trials;
  std::size_t damaged = 0;  // trials that could not be read
  std::string damage;       // … and what was wrong with the first one
  Attributes attributes;
};

/// Python's JSON, where NaN and Infinity may stand bare; numbers that are not whole are read by number() alone. Error
/// of kind `input` that names `where`.
boost::json::value parse_json(std::string_view text, const std::string& where);
/// A number, also NaN and infinite; nullopt: something else.
std::optional<double> number(const boost::json::value& value);
/// A parameter's or an attribute's value; what is no flag, number or text is the text of its JSON.
Value plain_value(const boost::json::value& value);

/// A parameter's distribution as Optuna writes it, and what a number that it stores means.
class Distribution {
 public:
  Distribution() = default;
  Distribution(std::string_view json, const std::string& where);
  Value value(double stored) const;
  std::string describe() const { return text_; }

 private:
  Value value_of(double stored) const;

  bool whole_ = false;
  std::vector<Value> choices_;
  std::string text_;
};

/// What Optuna's storages have of a trial, as they tell it bit by bit.
struct OptunaTrial {
  ForeignTrial trial;
  std::string state;  // "COMPLETE", …
  std::vector<double> values;
  std::map<std::int64_t, double> intermediate;
};
/// Gives the trial its reports and its state.
ForeignTrial finished(OptunaTrial trial, const std::vector<Objective>& objectives);
/// Of an Optuna study: names of metrics where it has some.
std::vector<Objective> objectives_of(const std::vector<Mode>& modes, const std::vector<std::string>& names,
                                     const ImportOptions& options);
/// Which of the studies is meant.
std::size_t chosen_study(const std::vector<std::string>& names, const ImportOptions& options,
                         const std::string& source);

ForeignStudy read_optuna_sqlite(const std::filesystem::path& file, const ImportOptions& options);
ForeignStudy read_optuna_journal(const std::filesystem::path& file, const ImportOptions& options);
ForeignStudy read_ray(const std::filesystem::path& folder, const ImportOptions& options);

}  // namespace hypertune::inline v0::detail::import
