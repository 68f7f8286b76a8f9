// Data read from another program's experiment, and the readers for it.
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
  std::string name;  // its name in the other program
  Params params;
  std::optional<TrialState> state;  // none: the trial had not ended
  std::optional<Seconds> started, ended;
  std::vector<ForeignReport> reports;
  Attributes attributes;
  std::string cause;
};

struct ForeignStudy {
  std::string what, name, searcher;
  const char* name_attribute;
  std::vector<Objective> objectives;
  std::map<std::string, std::string> space;  // by parameter, in the format of SearchSpace::describe()
  std::vector<ForeignTrial> trials;
  std::size_t damaged = 0;  // trials that could not be read
  std::string damage;       // the error of the first of these
  Attributes attributes;
};

/// Parses JSON as Python writes it, with bare NaN and Infinity. Non-integer numbers in the result can only be read by
/// number(). Error of kind `input` that names `where`.
boost::json::value parse_json(std::string_view text, const std::string& where);
/// A number, including NaN and infinities; nullopt: something else.
std::optional<double> number(const boost::json::value& value);
/// The value of a parameter or attribute. Anything but a bool, number or text becomes the text of its JSON.
Value plain_value(const boost::json::value& value);

/// A parameter's distribution as Optuna stores it; converts the stored numbers to values.
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

/// What Optuna's storages have about a trial, collected piece by piece.
struct OptunaTrial {
  ForeignTrial trial;
  std::string state;  // "COMPLETE", …
  std::vector<double> values;
  std::map<std::int64_t, double> intermediate;
};
/// Makes the final trial, with its reports and state.
ForeignTrial finished(OptunaTrial trial, const std::vector<Objective>& objectives);
/// The objectives of an Optuna study, with its names of the metrics if it has them.
std::vector<Objective> objectives_of(const std::vector<Mode>& modes, const std::vector<std::string>& names,
                                     const ImportOptions& options);
/// The index of the study to import.
std::size_t chosen_study(const std::vector<std::string>& names, const ImportOptions& options,
                         const std::string& source);

ForeignStudy read_optuna_sqlite(const std::filesystem::path& file, const ImportOptions& options);
ForeignStudy read_optuna_journal(const std::filesystem::path& file, const ImportOptions& options);
ForeignStudy read_ray(const std::filesystem::path& folder, const ImportOptions& options);

}  // namespace hypertune::inline v0::detail::import
