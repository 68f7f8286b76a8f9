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
  std::string name;                  // its name in the other program
  std::vector<std::string> retried;  // the causes of failures after which it was tried again
  Params params;
  std::optional<TrialState> state;  // none: the trial had not ended
  std::optional<Seconds> started, ended;
  Seconds created = 0;  // set with the times that are not known
  std::vector<ForeignReport> reports;
  Attributes attributes;
  std::string cause;
};

struct ForeignStudy {
  std::string what, name, searcher;
  const char* name_attribute;
  std::vector<Objective> objectives;
  std::vector<MetricBound> constraints;
  std::map<std::string, std::string> space;  // by parameter, in the format of SearchSpace::describe()
  std::vector<ForeignTrial> trials;
  bool numbered = false;    // the trials are in the order of their numbers
  std::size_t damaged = 0;  // trials that could not be read
  std::string damage;       // the error of the first of these
  std::size_t earlier = 0;  // folders of trials that the other program no longer counts
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
  /// Whether Optuna allows both for one parameter of a study: bounds may differ, kinds and choices not.
  bool compatible(const Distribution& other) const;

 private:
  Value value_of(double stored) const;

  bool whole_ = false, log_ = false;
  std::vector<Value> choices_;
  std::string text_;
};

/// What Optuna's storages have about a trial, collected piece by piece.
struct OptunaTrial {
  ForeignTrial trial;
  std::string state;  // "COMPLETE", …
  std::vector<double> values;
  std::map<std::int64_t, double> intermediate;
  std::vector<std::optional<double>> listed;  // constraints as one list, the only form before 5.0
  std::map<std::string, double> named;        // … each with its name, since 5.0

  bool is_finished() const { return state == "COMPLETE" || state == "PRUNED" || state == "FAIL"; }
  /// Takes in a constraint, if this system attribute is one.
  void system_attribute(std::string_view name, const boost::json::value& value);
};

/// What Optuna's storages have about a study.
struct OptunaStudy {
  std::string name;
  std::vector<Mode> modes;
  std::vector<std::string> metrics;  // names of the objectives, if they have any
  Attributes attributes;
  std::map<std::string, std::string> space;
  std::vector<OptunaTrial> trials;  // by number
  bool since_5 = false;             // Optuna 5.0 or newer wrote it
};
ForeignStudy finished(OptunaStudy study, const ImportOptions& options);
/// The index of the study to import.
std::size_t chosen_study(const std::vector<std::string>& names, const ImportOptions& options,
                         const std::string& source);

ForeignStudy read_optuna_sqlite(const std::filesystem::path& file, const ImportOptions& options);
ForeignStudy read_optuna_journal(const std::filesystem::path& file, const ImportOptions& options);
ForeignStudy read_ray(const std::filesystem::path& folder, const ImportOptions& options);

}  // namespace hypertune::inline v0::detail::import
