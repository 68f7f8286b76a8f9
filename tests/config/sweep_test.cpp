// What a sweep says beside its space.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"
#include "support/yaml_corpus.hpp"

#include <hypertune/config/sweep.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/tune/detail/stop_tree.hpp>

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

using namespace hypertune;

namespace {

constexpr const char* start =
    "trial: {command: [./train]}\nspace: {x: {uniform: [0, 1]}}\nmetric: loss\nmode: min\nsamples: 3\n";

Sweep read(const std::string& more) {
  return support::kept("sweep", start + more,
                       [&] { return sweep_from_yaml(load_yaml_text(start + more, "s.yaml"), false); });
}

std::string complaint(const std::string& more) {
  try {
    read(more);
  } catch (const Error& error) {
    CHECK(error.code() == Errc::input);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("constraints on metrics") {
  const auto sweep = read("constraints: {latency_ms: {at_most: 5}, recall: {at_least: 0.9, at_most: 1}}\n");
  CHECK(sweep.options.constraints ==
        std::vector<MetricBound>{at_most("latency_ms", 5), at_least("recall", 0.9), at_most("recall", 1)});
  CHECK(complaint("constraints: ['a < 1']").starts_with("s.yaml:6: 'constraints' must be bounds on metrics"));
  CHECK(complaint("constraints: {latency: 5}").starts_with("s.yaml:6: 'constraints.latency' must be {at_most: …}"));
  CHECK(complaint("constraints: {latency: {atmost: 5}}").find("did you mean 'at_most'") != std::string::npos);
  CHECK(complaint("constraints: {latency: {at_most: .inf}}").starts_with("s.yaml:6: bound on 'latency'"));
}

TEST_CASE("tpe by name, with its options") {
  CHECK(read("search: tpe\n").options.search.name() == "tpe");
  const auto sweep = read(
      "search: {type: tpe, startup_trials: 5, gamma: 0.2, max_good: 10, ei_candidates: 24, prior_strength: 0, repeat: "
      "2}\n");
  CHECK(sweep.options.search.name() == "repeat(tpe, 2)");
  CHECK(sweep.options.search.multi_objective());
  CHECK(complaint("search: {type: tpe, ei_candiates: 3}").find("did you mean 'ei_candidates'") != std::string::npos);
  CHECK(complaint("search: {type: tpe, gamma: 2}") == "s.yaml:6: tpe: gamma is 2, but must be above 0 and below 1");
  CHECK(complaint("search: {type: tpe, ei_candidates: 0}").find("ei_candidates is 0") != std::string::npos);
}

TEST_CASE("without a searcher it is Auto") {
  CHECK(read("").options.search.name() == "auto");
  CHECK(read("search: auto\n").options.search.name() == "auto");
  CHECK(Options{}.search.name() == "auto");
  CHECK(Options{}.search.multi_objective());
}

TEST_CASE("bohb and dehb bring their scheduler, unless the file names one") {
  for (const char* name : {"bohb", "dehb"}) {
    INFO(name);
    const auto sweep = read("search: {type: " + std::string(name) + ", max_steps: 27, reduction_factor: 3}\n");
    CHECK(sweep.options.schedule.name() == "hyperband");
    CHECK(sweep.options.schedule.max_steps() == 27);
    CHECK(sweep.options.search.name() == (std::string(name) == "bohb" ? "tpe" : "dehb"));
    CHECK(read("search: " + std::string(name) + "\n").options.schedule.max_steps() == 81);
    CHECK(read("search: " + std::string(name) + "\nschedule: asha\n").options.schedule.name() == "asha");
    CHECK(complaint("search: {type: " + std::string(name) + ", reduction_factor: 1}\n").find("reduction_factor") !=
          std::string::npos);
  }
  CHECK(read("search: tpe\n").options.schedule.name() == "fifo");
}

TEST_CASE("replay trains by a file that export --schedule wrote, and is the searcher too") {
  TemporaryDirectory directory;
  const auto file = directory.path() / "best.json";
  std::ofstream(file) << schedule_json(std::vector<ScheduleEntry>{{0, {{"x", 0.25}}, 3}, {8, {{"x", 0.5}}, 1}});
  const std::string from = "from: " + file.string();
  const auto sweep = read("schedule: {type: replay, " + from + ", max_steps: 20}\n");
  CHECK(sweep.options.schedule.name() == "replay");
  CHECK(sweep.options.schedule.max_steps() == 20);
  CHECK(sweep.options.search.name() == "replay");
  CHECK(complaint("schedule: replay\n").find("needs what to train by") != std::string::npos);
  CHECK(complaint("search: tpe\nschedule: {type: replay, " + from + "}\n").find("leave out 'search'") !=
        std::string::npos);
  CHECK(complaint("schedule: {type: replay, " + from + ", trial: 2}\n").find("is a file") != std::string::npos);
  CHECK(complaint("schedule: {type: replay, from: /nowhere/at/all}\n").find("/nowhere/at/all") != std::string::npos);
  std::ofstream(file) << schedule_json(std::vector<ScheduleEntry>{{0, {{"y", 0.25}}, 3}});
  CHECK(complaint("schedule: {type: replay, " + from + "}\n") != "no error");  // not a configuration of this space
  std::ofstream(file) << "[]";
  CHECK(complaint("schedule: {type: replay, " + from + "}\n").find("the schedule is empty") != std::string::npos);
}

TEST_CASE("the grace after Ctrl-C, and executors that a command cannot have") {
  CHECK(read("").options.interrupt_grace == 10);
  CHECK(read("interrupt_grace: 2m\n").options.interrupt_grace == 120);
  CHECK(complaint("interrupt_grace: soon\n").starts_with("s.yaml:6:"));
  CHECK(read("").options.ordered_timeout == 600);
  CHECK(read("ordered_timeout: 2m\n").options.ordered_timeout == 120);
  for (const char* text : {"executor: simulated\n", "executor: {type: simulated, workers: 8, seed: 1}\n"})
    CHECK(complaint(text).find("a command takes its own time") != std::string::npos);
}

TEST_CASE("how many workers a trial has, and how they find each other") {
  CHECK(read("").options.workers == Workers{});
  CHECK(read("workers: 3\n").options.workers == Workers{3});
  CHECK(read("workers: {min: 2, max: 4, placement: strict_spread}\n").options.workers ==
        Workers{.min = 2, .max = 4, .strategy = Strategy::strict_spread});
  CHECK(read("workers: {min: 2}\n").options.workers == Workers{2});
  CHECK(read("workers: {max: 2, placement: pack}\n").options.workers == Workers{.min = 1, .max = 2});
  CHECK(read("workers: 2\nexecutor: {isolation: thread}\n").executor.isolation == "thread");
  CHECK(complaint("workers: 0\n").find("'workers' must be 1 or more, not 0") != std::string::npos);
  CHECK(complaint("workers: {}\n").find("needs a number of workers") != std::string::npos);
  CHECK(
      complaint("workers: {min: 3, max: 2}\n").find("'workers.max' must be 'workers.min' or more, which is 3, not 2") !=
      std::string::npos);
  CHECK(complaint("workers: {max: 2, strategy: pack}\n").find("strategy") != std::string::npos);
  CHECK(complaint("workers: {max: 2, placement: sprad}\n").find("did you mean 'spread'?") != std::string::npos);
  CHECK_FALSE(read("workers: {min: 2, max: 8}\n").options.resize);
  const auto plan = read("workers: {min: 2, max: 8, plan: {10: 2, 30: 4, 60: 8}}\n").options.resize;
  REQUIRE(plan);
  const auto at = [&](int steps) { return plan({.steps = steps}); };
  CHECK((at(0) == 0 && at(9) == 0 && at(10) == 2 && at(29) == 2 && at(30) == 4 && at(60) == 8 && at(1000) == 8));
  for (const char* bad : {"{-1: 2}", "{ten: 2}", "{0: 1}", "{0: 9}", "{0: some}", "4"})
    CHECK(complaint(fmt::format("workers: {{min: 2, max: 8, plan: {}}}\n", bad)).find("workers.plan") !=
          std::string::npos);
  CHECK(read("group: {network: 10.1.0.0/16}\n").options.group.network == "10.1.0.0/16");
  CHECK_FALSE(read("").options.group.required);
  CHECK(read("executor: {type: slurm}\n").options.group.required);
  CHECK(read("group: {network: \"fd00::/8\"}\n").options.group.network == "fd00::/8");
  for (const char* bad : {"10.1.0.0", "10.1.0.0/33", "10.1/16", "lan/8", "10.1.0.0/x"})
    CHECK(complaint(std::string("group: {network: ") + bad + "}\n").find("must be a network such as 10.1.0.0/16") !=
          std::string::npos);
}

TEST_CASE("every scheduler can be named, with its options, and unknown options are refused") {
  for (const char* text :
       {"{type: successive_halving, grace_period: 2, max_steps: 50, reduction_factor: 4, trials: 16}",
        "successive_halving", "{type: mo_asha, grace_period: 1, max_steps: 9, reduction_factor: 3, history: 50}",
        "mo_asha", "{type: learning_curve, max_steps: 40, points: 6, chance: 0.1}", "learning_curve",
        "{type: hyper_sched, deadline: 10m, grace_period: 1, reduction_factor: 2, max_steps: 8}", "hyper_sched",
        "{type: pbt, perturbation_interval: 5, max_steps: 50, quantile_fraction: 0.2, resample_probability: 0.1, "
        "perturbation_factor: 1.3, exploit: t_test, window: 4, "
        "burn_in_period: 5, population_size: 8, synchronous: true, mutate: [x]}",
        "pbt",
        "{type: pb2, perturbation_interval: 5, max_steps: 50, quantile_fraction: 0.2, width: 2, history: 50, "
        "population_size: 8, synchronous: true, "
        "mutate: [x]}",
        "pb2"}) {
    INFO(text);
    const std::string schedule = text;
    const auto sweep = read("schedule: " + schedule + "\n");
    const std::string name = sweep.options.schedule.name();
    CHECK(schedule.find(name) != std::string::npos);
    if (schedule.front() != '{') continue;
    const std::string wrong = complaint("schedule: " + schedule.substr(0, schedule.size() - 1) + ", maxx: 3}\n");
    CHECK(wrong.find("unknown key 'maxx'") != std::string::npos);
  }
  CHECK(complaint("schedule: {type: pbt, exploit: best}\n").find("there are truncation, t_test") != std::string::npos);
  CHECK(complaint("schedule: {type: pbt, quantile_fraction: 0.9}\n").find("quantile_fraction is 0.9") !=
        std::string::npos);
  CHECK(complaint("schedule: pbtt\n").find("did you mean 'pbt'") != std::string::npos);
  CHECK(read("stop: {expected_gain: {threshold: 0.01, last: 5}}\n").options.stop.experiment() != nullptr);
  CHECK(complaint("stop: {expected_gain: {threshold: -1}}\n").find("threshold is -1") != std::string::npos);
}

TEST_CASE("stop: a metric that has the name of another condition has a map") {
  const auto bound = [](const std::string& stop) {
    const auto sweep = read("stop: " + stop + "\n");
    const auto* node = sweep.options.stop.experiment().get();
    REQUIRE(node != nullptr);
    return std::get<detail::StopAtValue>(node->leaf);
  };
  for (const char* name : {"time", "steps", "total_steps"}) {
    const auto most = bound("{" + std::string(name) + ": {at_most: 5}}");
    CHECK(most.metric == name);
    CHECK(most.value == 5);
  }
  const std::string timed = "space: {x: {uniform: [0, 1]}}\nmetric: time\nmode: min\ntrial: {command: [a]}\n";
  const auto refused = [&](const std::string& stop) {
    try {
      sweep_from_yaml(load_yaml_text(timed + stop, "sweep.yaml"), false);
      return std::string();
    } catch (const Error& e) { return std::string(e.what()); }
  };
  CHECK(refused("stop: {time: 10}\n").find("write 10s for the limit, or {at_least: 10} or {at_most: 10}") !=
        std::string::npos);
  CHECK(refused("stop: {time: 10s}\n") == "");
  CHECK(refused("stop: {time: {at_most: 10}}\n") == "");
}

TEST_CASE("trial: lists within the command, and files from templates") {
  const auto sweep_of = [](const std::string& trial) {
    return sweep_from_yaml(
        load_yaml_text("space: {x: {uniform: [0, 1]}}\nmetric: loss\nmode: min\nsamples: 3\n" + trial, "s.yaml"),
        false);
  };
  const auto sweep = sweep_of(
      "trial:\n  command: [a, [--x, \"{x}\"], b,\n    [-y]]\n"
      "  files: {in.nml: t.in, c/d.json: {text: '<x>', placeholders: <name>}}\n");
  const auto& trial = *sweep.trial;
  CHECK(trial.command == std::vector<std::string>{"a", "--x", "{x}", "b", "-y"});
  CHECK(trial.command_groups == std::vector<std::pair<std::size_t, std::size_t>>{{1, 3}, {4, 5}});
  REQUIRE(trial.command_places.size() == 5);
  CHECK(trial.command_places[4] == "s.yaml:7");
  REQUIRE(trial.files.size() == 2);
  CHECK(trial.files[0].from == "t.in");
  CHECK(trial.files[0].open == "@");
  CHECK(trial.files[1].text == "<x>");
  CHECK(trial.files[1].open == "<");
  CHECK(trial.files[1].close == ">");
  const auto refused = [&](const std::string& text) {
    try {
      sweep_of("trial: " + text + "\n");
      return std::string("no error");
    } catch (const Error& e) { return std::string(e.what()); }
  };
  CHECK(refused("{command: [[a], b]}").find("the program cannot vanish") != std::string::npos);
  CHECK(refused("{command: [a, []]}").find("is an empty list") != std::string::npos);
  CHECK(refused("{command: [a, [b, [c]]]}").find("must be a text, not a list") != std::string::npos);
  CHECK(refused("{command: [a, {x}]}").find("put the word in quotes") != std::string::npos);
  for (const char* path : {"../a", "/a", "log", "saved/a", "a/../b"})
    CHECK(refused("{command: [a], files: {" + std::string(path) + ": t}}").starts_with("s.yaml:5: 'trial.files."));
  CHECK(refused("{command: [a], files: {b: {}}}").find("needs one of 'from'") != std::string::npos);
  CHECK(refused("{command: [a], files: {b: {text: a, placeholders: '@'}}}").find("with marks on both sides") !=
        std::string::npos);
}

TEST_CASE("how the runs of a command make a trial's reports") {
  const auto with = [](const std::string& trial, const std::string& more = "metric: loss\nmode: min\n") {
    const auto text = "trial: {command: [./train], " + trial + "}\nspace: {x: {uniform: [0, 1]}}\nsamples: 3\n" + more;
    return support::kept("sweep", text, [&] { return sweep_from_yaml(load_yaml_text(text, "s.yaml"), false); });
  };
  const auto refused = [&](const std::string& trial, const std::string& more = "metric: loss\nmode: min\n") {
    try {
      with(trial, more);
    } catch (const Error& error) { return std::string(error.what()); }
    return std::string("no error");
  };
  const auto plain = *with("stop_grace: 1s").trial;
  CHECK(plain.output == CommandOutput::pipe);
  CHECK(plain.success == std::vector<int>{0});
  CHECK(plain.report == ReportRule::each);
  CHECK(plain.repeat == RepeatOptions{});
  CHECK(with("output: line").trial->output == CommandOutput::line);
  CHECK(with("success: [0, 10, 20]").trial->success == std::vector<int>{0, 10, 20});
  CHECK(with("success: 10").trial->success == std::vector<int>{10});
  CHECK(with("report: best").trial->report == ReportRule::best);
  CHECK(with("repeat: 5").trial->repeat == RepeatOptions{.times = 5});
  CHECK(with("repeat: 5").trial->report == ReportRule::last);
  CHECK(with("repeat: {times: 3, use: worst}, report: best").trial->repeat ==
        RepeatOptions{.times = 3, .use = RepeatRule::worst});
  CHECK(with("repeat: 1, report: each").trial->report == ReportRule::each);
  CHECK_THAT(refused("output: lines"), ContainsSubstring("did you mean 'line'"));
  CHECK_THAT(refused("success: [0, 256]"), ContainsSubstring("256"));
  CHECK_THAT(refused("success: []"), ContainsSubstring("success"));
  CHECK_THAT(refused("repeat: 0"), ContainsSubstring("repeat"));
  CHECK_THAT(refused("repeat: {use: mean}"), ContainsSubstring("times"));
  CHECK_THAT(refused("repeat: 2, report: each"), ContainsSubstring("write last or best"));
  CHECK_THAT(refused("report: best", "objectives: {loss: min, size: min}\n"), ContainsSubstring("needs one metric"));
  CHECK_THAT(refused("repeat: 2", "metric: loss\nmode: min\nworkers: 2\n"), ContainsSubstring("trials of one worker"));
}

TEST_CASE("trial.measure") {
  const auto measured = [](const std::string& measure, const std::string& more = "") {
    const std::string text =
        "space: {x: {uniform: [0, 1]}}\nmetric: loss\nmode: min\ntrial: {command: [a], measure: " + measure + more +
        "}\n";
    return support::kept("sweep", text, [&] { return sweep_from_yaml(load_yaml_text(text, "s.yaml"), false); })
        .trial->measure;
  };
  using All = std::vector<std::pair<std::string, Measured>>;
  CHECK(measured("duration") == All{{"duration", Measured::duration}});
  CHECK(measured("[cpu_time, peak_memory]") ==
        All{{"cpu_time", Measured::cpu_time}, {"peak_memory", Measured::peak_memory}});
  CHECK(measured("{loss: duration}", ", metrics: {other: 'a(b)'}") == All{{"loss", Measured::duration}});
  const auto refused = [&](const std::string& measure, const std::string& more = "") {
    try {
      measured(measure, more);
      return std::string("no error");
    } catch (const Error& e) { return std::string(e.what()); }
  };
  CHECK_THAT(refused("durations"), ContainsSubstring("did you mean 'duration'"));
  CHECK_THAT(refused("[duration, duration]"), ContainsSubstring("measured twice"));
  CHECK_THAT(refused("{step: duration}"), ContainsSubstring("no metric can be called 'step'"));
  CHECK_THAT(refused("{loss: duration}", ", metrics: {loss: 'a(b)'}"), ContainsSubstring("has an expression"));
  CHECK_THAT(refused(R"({"two\nlines": duration})"),
             ContainsSubstring("the name of the metric 'two?lines' has control characters"));
}
