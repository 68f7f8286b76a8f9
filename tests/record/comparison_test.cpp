// Comparing samples and experiments: figures of SciPy, of the definitions, and what holds over many draws.
#include "record_support.hpp"
#include "support/test.hpp"

#include <hypertune/record/comparison.hpp>
#include <hypertune/record/journal.hpp>
#include <hypertune/record/rank_test.hpp>
#include <hypertune/record/trace_export.hpp>

#include <boost/json.hpp>
#include <boost/random/normal_distribution.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace ht = hypertune;
namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
using Sample = std::vector<double>;

Sample normal_sample(ht::Rng& random, std::size_t size, double mean, double deviation) {
  boost::random::normal_distribution<double> normal(mean, deviation);
  Sample out;
  for (std::size_t i = 0; i < size; ++i) out.push_back(normal(random));
  return out;
}

// P(smallest of `draws` of a < smallest of `draws` of b) over all pairs of subsets.
double by_definition(const Sample& a, const Sample& b, unsigned draws) {
  double sum = 0, count = 0;
  const auto smallest = [](const Sample& values, unsigned set) {
    double least = infinity;
    for (std::size_t i = 0; i < values.size(); ++i)
      if ((set >> i & 1U) != 0) least = std::min(least, values[i]);
    return least;
  };
  for (unsigned i = 0; i < 1U << a.size(); ++i)
    for (unsigned j = 0; j < 1U << b.size(); ++j)
      if (static_cast<unsigned>(__builtin_popcount(i)) == draws &&
          static_cast<unsigned>(__builtin_popcount(j)) == draws) {
        const double x = smallest(a, i), y = smallest(b, j);
        sum += x < y ? 1 : x == y ? 0.5 : 0;
        ++count;
      }
  return sum / count;
}

// An experiment whose trial t reports values[t] one after the other, a report a second.
void write(const std::filesystem::path& directory, const std::string& name, const std::vector<Sample>& trials,
           std::uint64_t seed = 1, const std::vector<ht::MetricBound>& constraints = {}) {
  auto journal = ht::Journal::open(directory);
  ht::Seconds time = 1'700'000'000;
  journal.append(time, ht::record::ExperimentStarted{name,
                                                     {ht::maximize("accuracy")},
                                                     "lr: {log_uniform: [0.0001, 0.1]}\n",
                                                     "random",
                                                     "asha",
                                                     "threads",
                                                     static_cast<std::int64_t>(trials.size()),
                                                     seed,
                                                     false,
                                                     constraints});
  for (ht::TrialId t = 0; t < std::ssize(trials); ++t) {
    journal.append(time, ht::record::TrialCreated{t, {}, ht::Params{{"lr", 0.01}}, false});
    journal.append(time, ht::record::TrialStarted{t, 0, 0, "here", {}, {}});
    int step = 0;
    for (const double value : trials[static_cast<std::size_t>(t)])
      journal.append(time += 1, ht::record::TrialReported{t, 0, step++, {{"accuracy", value}, {"size", 10 * value}}});
    journal.append(time, ht::record::TrialEnded{t, ht::TrialState::completed, std::nullopt});
  }
  journal.flush();
}
}  // namespace

TEST_CASE("the best so far in a trace meets the constraints") {
  const support::TemporaryFolder folder;
  write(folder, "bounded", {{0.5, 0.9}, {0.6, 0.7}, {0.55}}, 1, {{"size", ht::Mode::minimize, 6.5}});
  std::string text;
  ht::export_trace(folder, [&](std::string_view piece) { text += piece; });
  std::vector<double> best;
  const auto trace = boost::json::parse(text);
  for (const auto& event : trace.at("traceEvents").as_array())
    if (event.at("name").as_string() == "best so far") best.push_back(event.at("args").at("value").to_number<double>());
  CHECK(best == std::vector<double>{0.5, 0.6});
}

TEST_CASE("the Brunner-Munzel test gives SciPy's figures") {
  // The example of Brunner and Munzel (2000): pain scores of two treatments.
  const Sample x{1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 1, 1}, y{3, 3, 4, 3, 1, 2, 3, 1, 1, 5, 4};
  const auto test = ht::rank_test(x, y);
  CHECK_THAT(test.method, ContainsSubstring("t approximation"));
  CHECK(*test.p == Approx(0.005786208666151469).epsilon(1e-9));
  CHECK(test.effect == Approx(0.788961038961039).epsilon(1e-9));  // as their paper says
  CHECK(test.interval->low > 0.5);
  CHECK(test.interval->high < 1);
  // Below ten values: all 462 permutations, of which SciPy's statistic is as large for 94.
  const Sample a{0.11, 0.32, 0.53, 0.24, 0.95}, b{0.41, 0.62, 0.93, 0.84, 0.55, 0.76};
  const auto small = ht::rank_test(a, b);
  CHECK_THAT(small.method, ContainsSubstring("all permutations"));
  CHECK(*small.p == Approx(94.0 / 462));
  CHECK(small.effect == Approx(1 - 7.0 / 30));
  CHECK(small.least_p == Approx(2.0 / 462));
  // The other way round is the same.
  const auto other = ht::rank_test(y, x);
  CHECK(other.effect == Approx(1 - test.effect));
  CHECK(*other.p == Approx(*test.p));
  CHECK(other.interval->low == Approx(1 - test.interval->high));
}

TEST_CASE("samples that do not overlap, are all the same, or too few") {
  const Sample low{1, 2, 3}, high{4, 5, 6};
  const auto apart = ht::rank_test(low, high);
  CHECK(apart.effect == 1);
  CHECK(*apart.p == Approx(0.1));  // 2 of the 20 ways
  CHECK(apart.least_p == Approx(0.1));
  CHECK(apart.interval->high == 1);
  CHECK(apart.interval->low > 0.3);
  CHECK(apart.interval->low < 0.9);
  const auto same = ht::rank_test(Sample{2, 2, 2}, Sample{2, 2, 2});
  CHECK(same.effect == 0.5);
  CHECK(*same.p == 1);
  CHECK(!ht::rank_test(Sample{1}, high).p);
  CHECK(!ht::rank_test(Sample{}, high).p);
  // What failed is the worst; many values that do not overlap have no variance for the t approximation.
  const Sample failed(12, infinity), fine(12, 1.0);
  const auto far = ht::rank_test(fine, failed);
  CHECK(far.effect == 1);
  CHECK(*far.p < 0.001);
  const Sample unknown(3, std::numeric_limits<double>::quiet_NaN());
  CHECK(ht::rank_test(low, unknown).effect == 1);
}

TEST_CASE("the test errs as often as it says, also where the samples vary differently") {
  ht::Rng random = ht::derived_rng(3, {1});
  constexpr int times = 400;
  for (const auto& [n, m, deviation] : {std::tuple<std::size_t, std::size_t, double>{12, 30, 3}, {6, 8, 1}}) {
    int rejected = 0, covered = 0;
    for (int i = 0; i < times; ++i) {
      const auto test = ht::rank_test(normal_sample(random, n, 0, deviation), normal_sample(random, m, 0, 1));
      rejected += *test.p < 0.05 ? 1 : 0;
      covered += test.interval->low <= 0.5 && 0.5 <= test.interval->high ? 1 : 0;
    }
    INFO(n << " and " << m << ": " << rejected << " rejected, " << covered << " covered of " << times);
    CHECK(rejected < times * 9 / 100);
    CHECK(rejected > times / 100);
    CHECK(covered > times * 90 / 100);
  }
}

TEST_CASE("the best of so many draws is that of all subsets") {
  const Sample a{0.11, 0.32, 0.53, 0.24, 0.95}, b{0.41, 0.32, 0.93, 0.84, 0.55, 0.11};
  for (const unsigned draws : {1U, 2U, 3U, 5U})
    CHECK(ht::best_of(a, b, draws).probability == Approx(by_definition(a, b, draws)));
  const auto two = ht::best_of(Sample{0.11, 0.32, 0.53, 0.24, 0.95}, Sample{0.41, 0.62, 0.93, 0.84, 0.55, 0.76}, 2);
  CHECK(two.probability == Approx(0.9666666666666666));
  CHECK(two.expected_a == Approx(0.233));
  CHECK(two.expected_b == Approx(0.5646666666666667));
  CHECK(two.interval->low <= two.probability);
  CHECK(two.interval->high >= two.probability);
  CHECK_THROWS_WITH(ht::best_of(a, b, 6), ContainsSubstring("6 draws of samples of 5 and 6"));
  // One failure among the draws does not matter; as many as the draws do.
  CHECK(std::isfinite(ht::best_of(Sample{1, infinity}, Sample{1, 2}, 2).expected_a));
  CHECK(std::isinf(ht::best_of(Sample{1, infinity}, Sample{1, 2}, 1).expected_a));
}

TEST_CASE("medians and several comparisons") {
  CHECK(ht::median(Sample{3, 1, 2}) == 2);
  CHECK(ht::median(Sample{4, 1, 2, 3}) == 2.5);
  CHECK(std::isnan(ht::median(Sample{})));
  CHECK(!ht::median_difference(Sample{1, 2, 3, 4}, Sample{1, 2, 3, 4, 5}));
  CHECK(!ht::median_difference(Sample{1, 2, 3, 4, infinity}, Sample{1, 2, 3, 4, 5}));
  const auto difference = ht::median_difference(Sample{11, 12, 13, 14, 15}, Sample{1, 2, 3, 4, 5});
  CHECK(difference->low >= 6);
  CHECK(difference->high <= 14);
  std::array p{0.01, 0.04, 0.03, 0.005};  // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
  ht::holm(p);
  CHECK(p[0] == Approx(0.03));
  CHECK(p[1] == Approx(0.06));
  CHECK(p[2] == Approx(0.06));
  CHECK(p[3] == Approx(0.02));
}

TEST_CASE("experiments are compared at the same expense") {
  support::TemporaryFolder folder;
  write(folder.path() / "a", "a", {{0.1, 0.2, 0.5}, {0.6, 0.3, 0.4}}, 1);
  write(folder.path() / "b", "b", {{0.7}, {0.2}, {0.9}, {0.95}, {0.96}}, 2);
  const auto result =
      ht::compare({ht::compared_experiment(folder.path() / "a"), ht::compared_experiment(folder.path() / "b")});
  const auto& a = result.experiments[0];
  const auto& b = result.experiments[1];
  CHECK(a.spent.reports == 6);
  CHECK(a.spent.elapsed == 6);
  CHECK(a.best == 0.6);
  CHECK(a.best_trial == 1);
  CHECK(a.best_at_reports(0) == std::nullopt);
  CHECK(a.best_at_reports(2) == 0.2);
  CHECK(a.best_at_time(3.5) == 0.5);
  CHECK(a.best_of_trials(1) == 0.5);
  CHECK(b.best == 0.96);
  CHECK(result.equal_trials == 2);
  CHECK(result.equal.reports == 5);
  CHECK(b.best_of_trials(2) == 0.7);
  CHECK(b.best_at_reports(3) == 0.9);
  CHECK(result.differing == std::vector<std::string>{"samples", "seed"});
  REQUIRE(result.tests.size() == 1);
  CHECK(result.tests[0].of_trials);
  CHECK(result.tests[0].test->effect == Approx(0.2));  // 2 of 10 pairs
  CHECK_THAT(result.tests[0].verdict, ContainsSubstring("too little data: with 2 and 5 trials"));
  CHECK_THAT(result.note, ContainsSubstring("other seeds"));
  CHECK_THAT(ht::comparison_table(result), ContainsSubstring("after 5 reports"));
  CHECK_THAT(ht::comparison_json(result), ContainsSubstring(R"("at_equal_reports": 0.96)"));
  // Another metric, which is no objective, needs its direction.
  CHECK_THROWS_WITH(ht::compared_experiment(folder.path() / "a", "size"), ContainsSubstring("is no objective"));
  CHECK_THROWS_WITH(ht::compared_experiment(folder.path() / "a", "speed", ht::Mode::minimize),
                    ContainsSubstring("reported a metric 'speed'"));
  CHECK(ht::compared_experiment(folder.path() / "a", "size", ht::Mode::minimize).best == 1);
  CHECK_THROWS_WITH(ht::compare({a}), ContainsSubstring("name two experiments"));
}

TEST_CASE("what breaks a constraint or failed is not the best of a comparison") {
  support::TemporaryFolder folder;
  write(folder.path() / "a", "a", {{0.1, 0.9}, {0.6}, {0.7}}, 1, {{"size", ht::Mode::minimize, 6.5}});
  {
    auto journal = ht::Journal::open(folder.path() / "a");
    journal.append(1'700'000'010, ht::record::AttemptFailed{1, 0, ht::Cause{ht::FailureSource::user, "boom"}, false});
    journal.append(1'700'000'010,
                   ht::record::TrialEnded{1, ht::TrialState::failed, ht::Cause{ht::FailureSource::user, "boom"}});
    journal.flush();
  }
  const auto a = ht::compared_experiment(folder.path() / "a");
  CHECK(a.failed == 1);
  CHECK(a.best == 0.1);
  CHECK(a.best_at_reports(100) == 0.1);
  CHECK(a.best_of_trials(3) == 0.1);
}

namespace {
// All trials of the experiment in `directory` fail, before they report anything.
void write_failed(const std::filesystem::path& directory, const std::string& name, int trials) {
  write(directory, name, {});
  auto journal = ht::Journal::open(directory);
  const ht::Cause cause{ht::FailureSource::user, "boom"};
  for (ht::TrialId t = 0; t < trials; ++t) {
    journal.append(1'700'000'000, ht::record::TrialCreated{t, {}, ht::Params{{"lr", 0.01}}, false});
    journal.append(1'700'000'000, ht::record::TrialStarted{t, 0, 0, "here", {}, {}});
    journal.append(1'700'000'000, ht::record::AttemptFailed{t, 0, cause, false});
    journal.append(1'700'000'000, ht::record::TrialEnded{t, ht::TrialState::failed, cause});
  }
  journal.flush();
}
}  // namespace

TEST_CASE("where nothing has a result, there is nothing to compare") {
  support::TemporaryFolder folder;
  write(folder.path() / "fine", "fine", {{0.1, 0.2, 0.5}, {0.6, 0.3, 0.4}});
  write_failed(folder.path() / "bad", "bad", 12);
  write_failed(folder.path() / "worse", "worse", 11);
  const auto read = [&](const char* name) { return ht::compared_experiment(folder.path() / name); };
  const auto one = ht::compare({read("fine"), read("bad")});
  REQUIRE(one.tests.size() == 1);
  CHECK(one.tests[0].verdict == "there is nothing to compare: no trial of 'bad' has a result");
  CHECK(!one.tests[0].p);
  CHECK(!one.tests[0].median_a);
  CHECK_THAT(ht::comparison_table(ht::compare({read("fine"), read("fine"), read("bad")})), !ContainsSubstring("Holm"));
  // What the other has found is not measured at the nothing that this one has spent.
  CHECK(one.equal.reports == 6);
  CHECK(one.experiments[0].best_at_reports(one.equal.reports) == 0.6);
  const auto both = ht::compare({read("bad"), read("worse")});
  CHECK(both.tests[0].verdict == "there is nothing to compare: no trial of either has a result");
  for (const auto* comparison : {&one, &both}) {
    const std::string text = ht::comparison_table(*comparison) + ht::comparison_json(*comparison);
    INFO(text);
    CHECK(text.find("inf") == std::string::npos);
    CHECK(text.find("Infinity") == std::string::npos);
    CHECK(text.find("medians") == std::string::npos);
    CHECK(text.find("probability 0") == std::string::npos);
    CHECK(comparison->note.empty());
  }
  // Of repetitions one may have failed: it counts as the worst of its group, and no median is infinite.
  std::vector<ht::ComparedExperiment> groups;
  for (const char* name : {"fine", "bad", "worse"}) groups.push_back(read(name));
  groups.push_back(read("fine"));
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].group = i < 2 ? "a" : "b";
  const auto repeated = ht::compare(groups);
  CHECK(repeated.tests[0].test);
  CHECK_THAT(ht::comparison_table(repeated), ContainsSubstring("medians none and none (none: half of them or more"));
  groups[2].group = "a", groups[0].group = groups[3].group = "b";
  CHECK_THAT(ht::compare(groups).tests[0].verdict, ContainsSubstring("no experiment of 'a' has a result"));
}

TEST_CASE("the command and the options of search and schedule are among what differs") {
  support::TemporaryFolder folder;
  for (const char* name : {"a", "b"}) {
    ht::record::ExperimentStarted started;
    started.name = name;
    started.objectives = {ht::maximize("accuracy")};
    started.searcher = "random", started.scheduler = "asha", started.executor = "threads";
    started.command = std::string("python3 train.py --data ") + name;
    if (name[0] == 'b') started.scheduler_options = "grace_period: 1, reduction_factor: 4";
    if (name[0] == 'a') started.scheduler_options = "grace_period: 1, reduction_factor: 3";
    auto journal = ht::Journal::open(folder.path() / name);
    journal.append(1'700'000'000, std::move(started));
    journal.flush();
  }
  const auto result =
      ht::compare({ht::compared_experiment(folder.path() / "a"), ht::compared_experiment(folder.path() / "b")});
  CHECK(result.differing == std::vector<std::string>{"trial.command", "schedule.reduction_factor"});
  CHECK(ht::setting(result.experiments[1], "trial.command") == "python3 train.py --data b");
  CHECK(ht::setting(result.experiments[1], "schedule.reduction_factor") == "4");
}

TEST_CASE("repeated experiments are tested against each other by their best") {
  support::TemporaryFolder folder;
  std::vector<ht::ComparedExperiment> all;
  for (int i = 0; i < 5; ++i) {
    for (const char* group : {"old", "new"}) {
      const auto directory = folder.path() / (group + std::to_string(i));
      const double best = (group[0] == 'n' ? 0.9 : 0.8) + 0.01 * i;
      write(directory, group, {{0.5, best}, {0.1, 0.2}}, static_cast<std::uint64_t>(i));
      all.push_back(ht::compared_experiment(directory));
    }
  }
  const auto result = ht::compare(all);
  REQUIRE(result.tests.size() == 1);
  const auto& test = result.tests[0];
  CHECK(!test.of_trials);
  CHECK(test.count_a == 5);
  CHECK(test.a == "old");
  CHECK(test.test->effect == 0);
  CHECK(*test.p == Approx(2.0 / 252));
  CHECK(*test.median_a == Approx(0.82));
  CHECK(test.median_difference->high < 0);
  CHECK_THAT(test.verdict, ContainsSubstring("new is better than old by more than chance"));
  CHECK(result.note.empty());
  all.resize(4);
  CHECK_THAT(ht::compare(all).tests[0].verdict, ContainsSubstring("too little data: with 2 and 2 experiments"));
  for (auto& each : all) each.group = "one";
  CHECK_THAT(ht::compare(all).note, ContainsSubstring("one group"));
}
