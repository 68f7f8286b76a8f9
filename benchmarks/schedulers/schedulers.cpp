// What schedulers save: benchmark_schedulers [SEEDS [PART …]]. See benchmarks/README.md.
// - fidelity: a real training (a network on a third of the handwritten digits) in a space so wide that few of its
//   configurations learn at all: what random search reaches with all its epochs, others with a fifth of them.
// - scaling: ASHA with 1 to 500 simulated workers.
// - toy: the toy of the paper on population based training.
// - population: population based training on the same network beside random search, with as many epochs.
#include "digits/data.hpp"
#include "digits/mlp.hpp"
#include "support/pbt_toy.hpp"

#include <hypertune/hypertune.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ht = hypertune;

namespace {

std::filesystem::path scratch() {
  const std::filesystem::path memory = "/dev/shm";
  const auto base = std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
  return base / fmt::format("hypertune-schedulers-{}", std::random_device{}());
}

ht::Options common(const std::filesystem::path& folder, int seed) {
  ht::Options o;
  std::filesystem::remove_all(folder);
  o.output = folder;
  o.display = ht::Display::quiet;
  o.seed = static_cast<std::uint64_t>(seed);
  o.search = ht::Random{};  // what is measured is the scheduler
  return o;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}
std::string quartiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return fmt::format("{:.4f} ({:.4f} - {:.4f})", median(values), values[(n - 1) / 4], values[(3 * n - 1) / 4]);
}

// ---- The network ----

struct Config {
  double learning_rate = 0.01, momentum = 0.9, weight_decay = 0, dropout = 0;
  int hidden = 32, batch = 32;
};

const auto network_space = ht::space<Config>(
    ht::dim("learning_rate", &Config::learning_rate, ht::log_uniform(1e-6, 10.0)),
    ht::dim("momentum", &Config::momentum, ht::uniform(0.0, 0.999)),
    ht::dim("weight_decay", &Config::weight_decay, ht::log_uniform(1e-6, 10.0)),
    ht::dim("dropout", &Config::dropout, ht::uniform(0.0, 0.9)), ht::dim("hidden", &Config::hidden, ht::integer(2, 64)),
    ht::dim("batch", &Config::batch, ht::log_int(2, 256)));

const digits::Digits& data() {
  static const digits::Digits third = [] {
    digits::Digits all = digits::load(HYPERTUNE_DIGITS);
    std::vector<Eigen::Index> chosen;
    for (Eigen::Index i = 0; i < all.train.size(); i += 3) chosen.push_back(i);
    digits::ImageSet some{all.train.images(Eigen::all, chosen), {}};
    for (const Eigen::Index i : chosen) some.labels.push_back(all.train.labels[static_cast<std::size_t>(i)]);
    all.train = std::move(some);
    return all;
  }();
  return third;
}

/// Every epoch that any trial trains, in order: the best validation loss so far.
std::vector<double> best_by_epoch;

class Network {
 public:
  explicit Network(const Config& c)
      : network_({.layers = {64, c.hidden, 10},
                  .optimizer = digits::Optimizer::sgd,
                  .learning_rate = c.learning_rate,
                  .momentum = c.momentum,
                  .weight_decay = c.weight_decay,
                  .dropout = c.dropout,
                  .batch = c.batch,
                  .seed = 1}) {}

  ht::Report step() {
    network_.train_epoch(data().train.images, data().train.labels);
    const double measured = network_.loss(data().validation.images, data().validation.labels);
    const double loss = std::isfinite(measured) ? std::min(measured, 10.0) : 10.0;
    best_by_epoch.push_back(best_by_epoch.empty() ? loss : std::min(loss, best_by_epoch.back()));
    return ht::report("loss", loss);
  }
  void save(ht::CheckpointWriter& out) const { network_.save(out.file("network")); }
  void restore(const ht::Checkpoint& in) { network_.load(in.file("network")); }

 private:
  digits::Mlp network_;
};

ht::Options of_network(const std::filesystem::path& folder, int seed) {
  auto o = common(folder, seed);
  o.metric = "loss";
  o.executor = ht::simulated({.pool = 4});
  o.checkpoint = {.every = 0, .keep = 1};
  return o;
}

void fidelity(const std::filesystem::path& folder, int seeds) {
  constexpr int epochs = 27, trials = 90, all = epochs * trials, fifth = all / 5;
  struct Method {
    std::string name;
    ht::AnySearcher search;
    ht::AnyScheduler schedule;
    int budget;
  };
  const auto methods = [] {
    const auto bohb = ht::bohb(epochs, 3), dehb = ht::dehb(epochs, 3);
    const ht::Asha asha{.grace_period = 1, .max_steps = epochs, .reduction_factor = 3};
    return std::vector<Method>{
        {"random search", ht::Random{}, ht::Fifo{.max_steps = epochs}, all},
        {"ASHA", ht::Random{}, asha, fifth},
        {"HyperBand", ht::Random{}, ht::HyperBand{.max_steps = epochs, .reduction_factor = 3}, fifth},
        {"BOHB", bohb.search, bohb.schedule, fifth},
        {"DEHB", dehb.search, dehb.schedule, fifth},
        {"TPE with ASHA", ht::Tpe{}, asha, fifth},
        {"GP with ASHA", ht::GaussianProcess{}, asha, fifth},
        {"TPE", ht::Tpe{}, ht::Fifo{.max_steps = epochs}, fifth},
        {"Auto with ASHA", ht::Auto{}, asha, fifth}};
  };
  fmt::print(
      "\n| method | epochs | validation loss: median (quartiles) | as good as random search with {} epochs | median "
      "epochs until then |\n|---|---:|---:|---:|---:|\n",
      all);
  double bar = 0;
  for (const auto& proto : methods()) {
    std::vector<double> reached, early, needed;
    for (int seed = 0; seed < seeds; ++seed) {
      auto o = of_network(folder, seed);
      o.samples = proto.budget;  // a trial has one step at least
      o.search = proto.search;
      o.schedule = proto.schedule;
      o.stop = ht::total_steps(proto.budget);
      best_by_epoch.clear();
      ht::tune<Network>(network_space, o);
      const auto at = [&](int n) { return best_by_epoch[std::min(best_by_epoch.size(), std::size_t(n)) - 1]; };
      reached.push_back(at(proto.budget));
      early.push_back(at(fifth));
      if (proto.budget == all) continue;
      const auto hit = std::find_if(best_by_epoch.begin(), best_by_epoch.end(), [&](double x) { return x <= bar; });
      needed.push_back(hit == best_by_epoch.end() || hit - best_by_epoch.begin() >= fifth
                           ? std::numeric_limits<double>::infinity()
                           : double(hit - best_by_epoch.begin() + 1));
    }
    if (proto.budget == all) {
      bar = median(reached);
      fmt::print("| {} | {} | {} | | |\n", proto.name, fifth, quartiles(early));
      fmt::print("| {} | {} | {} | | |\n", proto.name, all, quartiles(reached));
    } else {
      const auto good = std::count_if(needed.begin(), needed.end(), [](double x) { return std::isfinite(x); });
      const double middle = median(needed);
      fmt::print("| {} | {} | {} | {} of {} | {} |\n", proto.name, fifth, quartiles(reached), good, seeds,
                 std::isfinite(middle) ? fmt::format("{:.0f}", middle) : "more");
    }
    std::fflush(stdout);
  }
}

void scaling(const std::filesystem::path& folder) {
  struct Point {
    double x = 0;
  };
  const auto space = ht::space<Point>(ht::dim("x", &Point::x, ht::uniform(-1.0, 1.0)));
  fmt::print(
      "\n| simulated workers | virtual time for 20,000 configurations | times as fast | of linear |\n"
      "|---:|---:|---:|---:|\n");
  double one = 0;
  for (const int workers : {1, 10, 100, 250, 500}) {
    auto o = common(folder, 5);
    o.samples = 20'000;
    o.schedule = ht::Asha{.max_steps = 9};
    o.executor = ht::simulated({.pool = workers,
                                .step_seconds = [](const ht::Params& p, int) { return 1 + p.get<double>("x") / 2; },
                                .straggle_probability = 0.05,
                                .straggle_factor = 3,
                                .seed = 2});
    const auto results = ht::tune(
        space,
        [](Point point) -> ht::Training {
          for (int step = 1; step <= 9; ++step) co_yield ht::report("value", std::abs(point.x) + 0.3 / step);
        },
        o);
    const double seconds = results.experiment().updated;
    if (workers == 1) one = seconds;
    fmt::print("| {} | {:.0f} s | {:.1f} | {:.0f} % |\n", workers, seconds, one / seconds,
               100 * one / seconds / workers);
    std::fflush(stdout);
  }
}

// ---- Population based training ----

void toy(const std::filesystem::path& folder, int seeds) {
  fmt::print(
      "\n| the toy of PBT's paper, two trials of 800 steps | Q: median (quartiles), at most 1.2 |\n|---|---:|\n");
  struct Method {
    const char* name;
    ht::AnyScheduler schedule;
  };
  for (const Method& method :
       {Method{"PBT", ht::Pbt{.perturbation_interval = 4, .max_steps = 800, .quantile_fraction = 0.5}},
        Method{"h = (1, 0) and (0, 1) all along", ht::Fifo{.max_steps = 800}}}) {
    std::vector<double> reached;
    for (int seed = 0; seed < seeds; ++seed) {
      auto o = common(folder, seed);
      o.metric = "q";
      o.mode = ht::Mode::maximize;
      o.samples = 2;
      o.schedule = method.schedule;
      o.executor = ht::simulated({.pool = 2});
      o.checkpoint = {.every = 0, .keep = 1};
      o.start_with = {{{"h0", 1.0}, {"h1", 0.0}}, {{"h0", 0.0}, {"h1", 1.0}}};
      reached.push_back(ht::tune<pbt_toy::Toy>(pbt_toy::space(), o).best().best->value);
    }
    fmt::print("| {} | {} |\n", method.name, quartiles(reached));
  }
}

void population(const std::filesystem::path& folder, int seeds) {
  constexpr int trials = 16, epochs = 48;
  fmt::print(
      "\n| the network, {} epochs in all | validation loss: median (quartiles) | less than random search's with the "
      "same seed |\n|---|---:|---:|\n",
      trials * epochs);
  struct Method {
    const char* name;
    ht::AnyScheduler schedule;
  };
  std::vector<double> by_chance;
  const std::vector<std::string> mutate = {"learning_rate", "momentum", "weight_decay", "dropout", "batch"};
  for (const Method& method :
       {Method{"random search", ht::Fifo{.max_steps = epochs}},
        Method{"PBT", ht::Pbt{.perturbation_interval = 3, .max_steps = epochs, .mutate = mutate}},
        Method{"PB2", ht::Pb2{.perturbation_interval = 3, .max_steps = epochs, .mutate = mutate}}}) {
    std::vector<double> reached;
    for (int seed = 0; seed < seeds; ++seed) {
      auto o = of_network(folder, seed);
      o.samples = trials;
      o.schedule = method.schedule;
      best_by_epoch.clear();
      ht::tune<Network>(network_space, o);
      reached.push_back(best_by_epoch[std::min(best_by_epoch.size(), std::size_t(trials * epochs)) - 1]);
    }
    if (by_chance.empty()) by_chance = reached;
    int better = 0;
    for (std::size_t i = 0; i < reached.size(); ++i) better += reached[i] < by_chance[i] ? 1 : 0;
    fmt::print("| {} | {} | {} of {} |\n", method.name, quartiles(reached), better, seeds);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const int seeds = argc > 1 ? std::max(2, std::atoi(argv[1])) : 20;
  const std::set<std::string> wanted(argv + std::min(argc, 2), argv + argc);
  const auto asked = [&](const char* part) { return wanted.empty() || wanted.contains(part); };
  const auto folder = scratch();
  if (asked("fidelity")) fidelity(folder, seeds);
  if (asked("scaling")) scaling(folder);
  if (asked("toy")) toy(folder, seeds);
  if (asked("population")) population(folder, seeds);
  std::filesystem::remove_all(folder);
} catch (const std::exception& error) {
  std::fprintf(stderr, "schedulers: %s\n", error.what());
  return 2;
}
