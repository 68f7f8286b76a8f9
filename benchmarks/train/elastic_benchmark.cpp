// Trainings of several workers that are killed, joined and left alone: what changes of the group cost, and what it
// costs to be ready for them. Usage: benchmark_elastic [kill] [grow] [steady] [scale] [start] [--times N]
// [--milliseconds N]
// [--json FILE] [--trace]; see ../README.md
#include "../processor_seconds.hpp"
#include "event_log.hpp"
#include "small_network.hpp"
#include "support/temporary_directory.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/local/processes.hpp>
#include <hypertune/remote/agent.hpp>
#include <hypertune/remote/executor.hpp>
#include <hypertune/train/connect.hpp>
#include <hypertune/train/elastic_sampler.hpp>
#include <hypertune/train/elastic_state.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace ht = hypertune;
namespace fs = std::filesystem;
using elastic::Event;
using elastic::EventLog;
using What = Event::What;

constexpr int steps_of_a_part = 10;  // between two reports

/// What the trials of a run do. Set before the executor begins, so that its processes have it.
struct Job {
  enum class Kind : std::uint8_t { train, grow, steady, scale, start } kind = Kind::train;
  elastic::Shape shape = {};
  int batch = 64;   ///< samples of a step: of all workers; of each one (steady, scale)
  int steps = 100;  ///< of each kind (steady) or in all (scale)
};
Job job;
std::unique_ptr<EventLog> events;
std::unique_ptr<elastic::Blobs> blobs;

struct Config {
  double x = 0;
};
auto space() { return ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(0.0, 1.0))); }

double since(double begin) { return elastic::now() - begin; }

// ---- What workers do

void note(What what, const ht::Context& context, const ht::GroupPlace& place, double value = 0) {
  events->note({.time = 0,
                .what = what,
                .trial = static_cast<std::int32_t>(context.trial()),
                .rank = place.rank,
                .size = place.size(),
                .generation = place.generation,
                .value = value});
}

ht::ElasticOptions watched(const ht::Context& context) {
  ht::ElasticOptions options;
  options.communicator.timeout = 20;
  options.connect = [&context](const ht::GroupPlace& place, ht::Rendezvous& to, const ht::CommunicatorOptions& how) {
    note(What::joined, context, place);
    auto communicator = ht::connect(place, to, how);
    note(What::connected, context, place);
    return communicator;
  };
  return options;
}

/// A network, and the group that trains it.
struct Worker {
  explicit Worker(ht::Context& c)
      : context(c), network(job.shape), sampler(blobs->size(), {.seed = 3}), group(c, watched(c)) {
    group.gradients().add(network.gradient());
    group.keep(network.weights()).keep(network.momentum()).keep(sampler).keep(over);
    group.on_change([this](const ht::GroupPlace&, const ht::GroupPlace& place) { note(What::formed, context, place); });
  }
  std::size_t compute(std::uint64_t global_batch) {
    if (sampler.done()) sampler.next_epoch();
    const auto batch = sampler.next(global_batch, group.rank(), group.size());
    network.backward(*blobs, batch);
    return batch.size();
  }
  void elastic_step(std::uint64_t global_batch) {
    const auto samples = compute(global_batch);
    group.gradients().reduce(static_cast<std::int64_t>(samples));
    network.step(0.01F);
    group.commit();
  }
  void reducing_step(std::uint64_t global_batch) {
    const auto samples = compute(global_batch);
    group.gradients().reduce(static_cast<std::int64_t>(samples));
    network.step(0.01F);
  }
  void plain_step(std::uint64_t global_batch, ht::Communicator& communicator) {
    compute(global_batch);
    communicator.all_reduce(std::span(network.gradient()), ht::Reduction::mean);
    network.step(0.01F);
  }

  ht::Context& context;
  elastic::Network network;
  ht::ElasticSampler sampler;
  std::int32_t over = 0;
  ht::ElasticState group;
};

/// Trains until the driver says that it is enough, and notes each commit.
ht::Training train_on(ht::Context& context) {
  Worker worker(context);
  auto& group = worker.group;
  const auto committed = [&] { note(What::committed, context, group.place()); };
  while (worker.over == 0) {
    group.run([&] {
      for (int i = 0; i < steps_of_a_part; ++i) {
        try {
          worker.elastic_step(static_cast<std::uint64_t>(job.batch));
        } catch (const ht::GroupError&) {
          note(What::failed, context, group.place());
          throw;
        } catch (const ht::Error&) { throw; } catch (...) {
          committed();  // and leaves the generation
          throw;
        }
        committed();
      }
      worker.over = group.communicator().all_reduce(events->stop().load(), ht::Reduction::max);
    });
    co_yield ht::report("workers", static_cast<double>(group.size()));
  }
}

/// Takes room until another trial is to have it.
ht::Training lodge() {
  while (events->release() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  co_yield ht::report("workers", 0.0);
}

/// Steps in turn: with a commit, with a plain all_reduce, with the reduction of gradients but no commit. Each begins
/// where the one before has ended, so that what else the machine does meets all alike.
ht::Training compare_steps(ht::Context& context) {
  Worker worker(context);
  auto& group = worker.group;
  group.run([&] {
    auto communicator = group.communicator();
    const auto batch = static_cast<std::uint64_t>(job.batch) * static_cast<std::uint64_t>(group.size());
    std::mt19937 random(5);  // the same order on all ranks
    std::array<int, 3> kinds = {0, 1, 2};
    for (int step = -10; step < job.steps; ++step) {
      std::shuffle(kinds.begin(), kinds.end(), random);
      for (const int kind : kinds) {
        const double processor = processor_seconds(), begin = elastic::now();
        if (kind == 0)
          worker.elastic_step(batch);
        else if (kind == 1)
          worker.plain_step(batch, communicator);
        else
          worker.reducing_step(batch);
        const double wall = since(begin), used = processor_seconds() - processor;
        if (step < 0) continue;
        events->note({.time = used,
                      .what = What::committed,
                      .trial = kind,
                      .rank = group.rank(),
                      .size = group.size(),
                      .generation = static_cast<std::uint32_t>(step),
                      .value = wall});
      }
    }
  });
  co_yield ht::report("workers", 1.0);
}

/// So many steps, each with a commit, of a batch for each worker.
ht::Training train_for(ht::Context& context) {
  Worker worker(context);
  auto& group = worker.group;
  group.run([&] {
    for (int i = 0; i < job.steps; ++i) {
      worker.elastic_step(static_cast<std::uint64_t>(job.batch) * static_cast<std::uint64_t>(group.size()));
      note(What::committed, context, group.place(), processor_seconds());
    }
  });
  co_yield ht::report("workers", 1.0);
}

ht::Training begin_once(ht::Context& context) {
  note(What::entered, context, context.group().place());
  Worker worker(context);
  worker.group.run([&] { worker.elastic_step(static_cast<std::uint64_t>(job.batch)); });
  note(What::reported, context, worker.group.place());
  co_yield ht::report("workers", 1.0);
}

ht::Training train(Config, ht::Context& context) {
  switch (job.kind) {
    case Job::Kind::train: return train_on(context);
    case Job::Kind::grow: return context.trial() == 0 ? lodge() : train_on(context);
    case Job::Kind::steady: return compare_steps(context);
    case Job::Kind::scale: return train_for(context);
    case Job::Kind::start: return begin_once(context);
  }
  return lodge();
}

// ---- Runs

struct Run {
  ht::Workers workers = {};
  int trials = 1;
  int slots = 4;
  ht::AnyExecutor executor = ht::processes({.pool = slots, .pin = false});
};

/// Runs the trials, and meanwhile `disturb`, which returns when it has seen enough. Returns all that was noted.
std::vector<Event> run(Run what, const std::function<void()>& disturb = {}, double* seconds = nullptr) {
  const TemporaryDirectory folder;
  ht::Options options{.metric = "workers",
                      .samples = what.trials,
                      .executor = std::move(what.executor),
                      .output = folder.path() / "run"};
  options.search = ht::Random{};
  options.workers = what.workers;
  options.display = ht::Display::quiet;
  options.max_retries = 3;
  std::string failure;
  std::jthread other;
  if (disturb)
    other = std::jthread([&] {
      try {
        disturb();
      } catch (const std::exception& error) { failure = error.what(); }
      events->release() = 1;
      events->stop() = 1;
    });
  const double begin = elastic::now();
  const auto results = ht::tune(space(), train, std::move(options));
  if (seconds != nullptr) *seconds = since(begin);
  if (other.joinable()) other.join();
  if (!failure.empty()) ht::fail(ht::Errc::experiment, "{}", failure);
  if (results.count(ht::TrialState::completed) != static_cast<std::size_t>(what.trials))
    ht::fail(ht::Errc::experiment, "not all trials have completed");
  for (const auto& trial : results.trials())
    if (trial.failures[0] + trial.failures[1] != 0)
      fmt::print("trial {} began again, from a checkpoint or none\n", trial.trial);
  return events->read();
}

/// A fresh log, and the folder of its file.
class Noting {
 public:
  Noting() { events = std::make_unique<EventLog>(file()); }
  fs::path file() const { return folder_.path() / "events"; }

 private:
  TemporaryDirectory folder_{TemporaryDirectory::memory()};
};

/// What comes to be in the log: calls `found` with all events so far, until it says so.
void until(const std::function<bool(const std::vector<Event>&)>& found, const std::string& what) {
  const double begin = elastic::now();
  std::vector<Event> all;
  for (;;) {
    const auto more = events->read(all.size());
    all.insert(all.end(), more.begin(), more.end());
    if (found(all)) return;
    if (since(begin) > 60) ht::fail(ht::Errc::io, "{} has not come about within a minute", what);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// ---- Figures

double median(std::vector<double> values) {
  if (values.empty()) return std::nan("");
  std::sort(values.begin(), values.end());
  const auto half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::ofstream json;

/// "| figure | median | quartiles | min - max | n |".
void heading(const std::string& what) {
  fmt::print("\n| {} | median | quartiles | min - max | n |\n|---|--:|--:|--:|--:|\n", what);
}
void row(const std::string& what, std::vector<double> values, int digits = 1) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values.empty() ? std::nan("")
                          : values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
  };
  fmt::print("| {} | {:.{}f} | {:.{}f} - {:.{}f} | {:.{}f} - {:.{}f} | {} |\n", what, median(values), digits, at(0.25),
             digits, at(0.75), digits, at(0), digits, at(1), digits, values.size());
  std::fflush(stdout);
  if (json)
    json << fmt::format("{{\"figure\": \"{}\", \"values\": [{:.6g}]}}\n", what, fmt::join(values, ", ")) << std::flush;
}

struct Arguments {
  std::set<std::string> parts = {};
  int times = 11;
  double milliseconds = 20;  // that a worker computes in a step
  bool trace = false;
};

/// How many samples take this processor so long: the best of some tries, as others use it, too.
int calibrated(double milliseconds) {
  elastic::Network network(job.shape);
  std::vector<std::uint64_t> batch(64);
  double best = 1e9;
  for (int i = 0; i < 15; ++i) {
    const double begin = elastic::now();
    network.backward(*blobs, batch);
    best = std::min(best, since(begin));
  }
  return std::max(1, static_cast<int>(milliseconds / 1e3 / best * static_cast<double>(batch.size())));
}

/// So many samples that the last batch of an epoch is as large as all others, with one worker and with two.
void prepare(elastic::Shape shape, int batch) {
  job.shape = shape;
  job.batch = batch;
  blobs = std::make_unique<elastic::Blobs>(static_cast<std::size_t>(batch) * 8, shape);
}

const Event* find(const std::vector<Event>& all, const std::function<bool(const Event&)>& wanted) {
  const auto found = std::find_if(all.begin(), all.end(), wanted);
  return found == all.end() ? nullptr : &*found;
}

/// Between two commits of a process in the same generation.
std::vector<double> usual_gaps(const std::vector<Event>& all) {
  std::map<int, Event> last;
  std::vector<double> gaps;
  for (const Event& event : all) {
    if (event.what != What::committed) continue;
    if (const auto before = last.find(event.pid); before != last.end() && before->second.generation == event.generation)
      gaps.push_back(1e3 * (event.time - before->second.time));
    last[event.pid] = event;
  }
  return gaps;
}

void trace(const std::vector<Event>& all, double from, double to, const char* why) {
  constexpr const char* names[] = {"entered", "joined",    "connected", "formed",
                                   "failed",  "committed", "reported",  "killed"};
  fmt::print("-- {}\n", why);
  for (const Event& event : all)
    if (event.time >= from && event.time <= to)
      fmt::print("   {:+9.2f} ms  pid {} trial {} rank {} of {}, generation {}: {}\n", 1e3 * (event.time - from),
                 event.pid, event.trial, event.rank, event.size, event.generation, names[static_cast<int>(event.what)]);
}

/// One of four is killed at any moment, again and again, each time that four have trained for some steps.
void measure_kills(const Arguments& arguments, ht::Workers workers, const std::string& name) {
  const Noting noting;
  job.kind = Job::Kind::train;
  std::vector<std::pair<double, std::uint32_t>> kills;
  const auto all = run({.workers = workers, .slots = 4}, [&] {
    std::mt19937 random(4);
    for (int i = 0; i < arguments.times; ++i) {
      std::map<int, int> pids;
      std::uint32_t generation = 0;
      until(
          [&](const std::vector<Event>& seen) {
            if (seen.empty()) return false;
            generation = 0;
            for (const Event& event : seen) generation = std::max(generation, event.generation);
            int commits = 0;
            pids.clear();
            for (const Event& event : seen)
              if (event.generation == generation && event.what == What::committed && event.size == 4) {
                pids[event.rank] = event.pid;
                commits += event.rank == 0;
              }
            return commits >= 15 && pids.size() == 4 && (kills.empty() || generation > kills.back().second);
          },
          "a training of four");
      std::this_thread::sleep_for(std::chrono::duration<double>(0.04 * std::uniform_real_distribution<>()(random)));
      const int rank = i % 4;
      kills.emplace_back(elastic::now(), generation);
      ::kill(pids.at(rank), SIGKILL);
      events->note({.time = kills.back().first,
                    .what = What::killed,
                    .pid = pids.at(rank),
                    .rank = rank,
                    .size = 4,
                    .generation = generation});
      until(
          [&](const std::vector<Event>& seen) {
            return find(seen, [&](const Event& e) { return e.what == What::committed && e.generation > generation; }) !=
                   nullptr;
          },
          "a step after a kill");
    }
  });
  std::vector<double> first, last, noticed, formed, connected, trained;
  for (const auto& [time, generation] : kills) {
    std::map<What, std::pair<double, double>> when;  // of the next generation's ranks: the first, the last
    std::map<std::pair<What, int>, bool> had;
    for (const Event& event : all) {
      if (event.time < time || event.what == What::killed) continue;
      if (event.generation != (event.what == What::failed ? generation : generation + 1)) continue;
      if (std::exchange(had[{event.what, event.pid}], true)) continue;
      auto& [a, b] = when.try_emplace(event.what, 1e18, 0.0).first->second;
      a = std::min(a, event.time);
      b = std::max(b, event.time);
    }
    // Where that generation gave way to another one before it had committed anything.
    for (const Event& event : all)
      if (event.what == What::committed && event.time > time && event.generation > generation + 1)
        if (when.try_emplace(What::committed, event.time, event.time).second) break;
    const auto ms = [&](double t) { return 1e3 * (t - time); };
    first.push_back(ms(when[What::committed].first));
    last.push_back(ms(when[What::committed].second));
    noticed.push_back(ms(when[What::failed].second));
    formed.push_back(ms(when[What::joined].second));
    connected.push_back(ms(when[What::connected].second));
    trained.push_back(ms(when[What::formed].second));
  }
  heading(name + ", ms from the SIGKILL to");
  row("the last of the others sees it in a collective", noticed);
  row("… the executor has formed the next group", formed);
  row("… its ranks are connected", connected);
  row("… have the same state", trained);
  row("the first commit in it", first);
  row("… the last rank's", last);
  row("(usual: from a commit to the next)", usual_gaps(all));
  const double usual = median(first);
  for (std::size_t i = 0; i < kills.size(); ++i)
    if (arguments.trace || first[i] > std::max(300.0, 3 * usual))
      trace(all, kills[i].first, kills[i].first + first[i] / 1e3 + 0.05,
            fmt::format("kill {}: {:.1f} ms", i, first[i]).c_str());
}

/// Another trial gives its room to one of four, which so becomes one of six.
void measure_growth(const Arguments& arguments) {
  job.kind = Job::Kind::grow;
  std::vector<double> lost, slowest, gaps, until_six, overlap;
  for (int i = 0; i < arguments.times; ++i) {
    const Noting noting;
    double released = 0;
    const auto all = run({.workers = {.min = 4, .max = 6}, .trials = 2, .slots = 10}, [&] {
      const auto commits = [](int size) {
        return [size](const std::vector<Event>& seen) {
          return std::count_if(seen.begin(), seen.end(), [&](const Event& e) {
                   return e.what == What::committed && e.rank == 0 && e.size == size;
                 }) >= 30;
        };
      };
      until(commits(4), "a training of four");
      released = elastic::now();
      events->release() = 1;
      until(commits(6), "a training of six");
    });
    // The gap between the last commit of four and the first of six, of each that was there, beyond the usual one.
    std::map<int, double> before, after;
    double newcomer = 1e18;
    std::vector<double> usual;
    for (const Event& event : all) {
      if (event.what == What::joined && event.size == 6 && !before.contains(event.pid))
        newcomer = std::min(newcomer, event.time);
      if (event.what != What::committed) continue;
      if (event.size == 4) {
        if (const auto b = before.find(event.pid); b != before.end() && event.time < released)
          usual.push_back(event.time - b->second);
        before[event.pid] = event.time;
      } else if (!after.contains(event.pid)) {
        after[event.pid] = event.time;
      }
    }
    const double step = median(usual);
    double most = 0, first = 1e18;
    for (const auto& [pid, time] : before) {
      const double gap = after.at(pid) - time - step;
      lost.push_back(1e3 * gap);
      most = std::max(most, gap);
      first = std::min(first, after.at(pid));
    }
    slowest.push_back(1e3 * most);
    gaps.push_back(1e3 * step);
    until_six.push_back(1e3 * (first - released));
    if (arguments.trace || most > 0.1) {
      double from = 1e18;
      for (const auto& [pid, time] : before) from = std::min(from, time);
      trace(all, from, first + 0.05, fmt::format("growth {}: {:.1f} ms", i, 1e3 * most).c_str());
    }
  }
  heading("From 4 to 6 workers, ms");
  row("lost by each of the four, beyond a usual step", lost);
  row("… by the one that lost most", slowest);
  row("(usual: from a commit to the next)", gaps);
  row("from the end of another trial to the first commit of six", until_six);
}

/// The figure of one kind of step over that of another, from a thousand draws: the middle and, as a spread, 95 %.
std::array<double, 3> compared(const std::vector<double>& one, const std::vector<double>& other) {
  std::mt19937 random(6);
  std::vector<double> ratios;
  std::uniform_int_distribution<std::size_t> any(0, one.size() - 1);
  std::vector<double> a(one.size()), b(one.size());
  for (int draw = 0; draw < 400; ++draw) {
    for (std::size_t i = 0; i < one.size(); ++i) {
      const auto picked = any(random);
      a[i] = one[picked], b[i] = other[picked];
    }
    ratios.push_back(100 * (median(a) / median(b) - 1));
  }
  std::sort(ratios.begin(), ratios.end());
  return {100 * (median(one) / median(other) - 1), ratios[10], ratios[389]};
}

void measure_steady(const std::string& name, int steps) {
  const Noting noting;
  job.kind = Job::Kind::steady;
  job.steps = steps;
  const auto all = run({.workers = {2}, .slots = 2});
  // By step: wall time of the slower rank and processor time of both, in ms.
  std::array<std::vector<double>, 3> wall, used;
  for (int kind = 0; kind < 3; ++kind) {
    wall[static_cast<std::size_t>(kind)].resize(static_cast<std::size_t>(steps));
    used[static_cast<std::size_t>(kind)].resize(static_cast<std::size_t>(steps));
  }
  for (const Event& event : all) {
    if (event.what != What::committed) continue;
    const auto kind = static_cast<std::size_t>(event.trial);
    wall[kind][event.generation] = std::max(wall[kind][event.generation], 1e3 * event.value);
    used[kind][event.generation] += 1e3 * event.time / 2;
  }
  heading(fmt::format("{}, ms a step: {} samples of each of 2 workers, {} floats", name, job.batch,
                      elastic::Network(job.shape).weights().size()));
  row("ElasticState", wall[0], 3);
  row("… gradients without the commit", wall[2], 3);
  row("all_reduce alone", wall[1], 3);
  row("processor time, ElasticState", used[0], 3);
  row("… gradients without the commit", used[2], 3);
  row("… all_reduce alone", used[1], 3);
  const auto time = compared(wall[0], wall[1]), processor = compared(used[0], used[1]);
  fmt::print(
      "\n{:.0f} samples/s with ElasticState, {:.0f} with all_reduce alone (medians). It takes {:+.2f} % of time "
      "({:+.2f} to {:+.2f}, 95 %), {:+.2f} % of processor time ({:+.2f} to {:+.2f}).\n",
      2e3 * job.batch / median(wall[0]), 2e3 * job.batch / median(wall[1]), time[0], time[1], time[2], processor[0],
      processor[1], processor[2]);
}

void measure_scale(const Arguments& arguments) {
  job.kind = Job::Kind::scale;
  job.steps = 100;
  // Samples a second, and processor seconds a sample, from the tenth step on.
  const auto rates = [&](const std::vector<Event>& all, int trial) {
    std::map<int, std::pair<Event, Event>> ends;
    std::map<int, int> steps;
    for (const Event& event : all) {
      if (event.what != What::committed || event.trial != trial) continue;
      if (++steps[event.rank] == 10) ends[event.rank].first = event;
      ends[event.rank].second = event;
    }
    const double samples = 90.0 * job.batch;
    double rate = 0, used = 0;
    for (const auto& [rank, pair] : ends) {
      rate += samples / (pair.second.time - pair.first.time);
      used += (pair.second.value - pair.first.value) / samples / static_cast<double>(ends.size());
    }
    return std::pair(rate, used);
  };
  std::vector<double> one, two, apart, scaled, against_apart, used;
  for (int i = 0; i < arguments.times; ++i) {
    const auto measured = [&](Run what) {
      const Noting noting;
      return run(std::move(what));
    };
    const auto alone = rates(measured({.workers = {1}, .slots = 2}), 0);
    const auto both = rates(measured({.workers = {2}, .slots = 2}), 0);
    const auto singles = measured({.workers = {1}, .trials = 2, .slots = 2});
    const double separate = rates(singles, 0).first + rates(singles, 1).first;
    one.push_back(alone.first);
    two.push_back(both.first);
    apart.push_back(separate);
    scaled.push_back(100 * both.first / alone.first / 2);
    against_apart.push_back(100 * both.first / separate);
    used.push_back(100 * (both.second / alone.second - 1));
  }
  heading(fmt::format("From 1 to 2 workers on {} cores: {} samples a step of each", std::thread::hardware_concurrency(),
                      job.batch));
  row("1 worker, samples/s", one, 0);
  row("2 workers, samples/s", two, 0);
  row("two trials of one worker at once, samples/s", apart, 0);
  row("2 workers, % of twice 1", scaled);
  row("2 workers, % of the two trials", against_apart);
  row("processor time a sample, % more than 1", used);
}

void measure_starts(const Arguments& arguments, const std::string& self) {
  job.kind = Job::Kind::start;
  for (const bool remote : {false, true}) {
    std::vector<double> all_of[2], entered[2];
    for (int i = 0; i < 2 * arguments.times; ++i) {
      const bool gang = i % 2 == 0;
      const Noting noting;
      const TemporaryDirectory folder;
      Run what{.workers = {gang ? 4 : 1}, .trials = gang ? 1 : 4, .slots = 4};
      if (remote) {
        ht::remote::RemoteHost host{.name = "a",
                                    .dialer = ht::remote::CommandDialer(
                                        {self, "--agent", (folder.path() / "agent").string(), noting.file().string()})};
        std::vector<ht::remote::RemoteHost> hosts;
        hosts.push_back(std::move(host));
        ht::remote::HostPool pool;
        for (auto& h : hosts) pool.add(std::move(h));
        what.executor = ht::RemoteExecutor(std::move(pool));
      }
      const double begin = elastic::now();
      const auto all = run(std::move(what));
      double first = 1e18, last = 0;
      int reports = 0;
      for (const Event& event : all) {
        if (event.what == What::entered) first = std::min(first, event.time);
        if (event.what == What::reported) last = std::max(last, event.time), ++reports;
      }
      if (reports != 4) ht::fail(ht::Errc::experiment, "{} reports of 4", reports);
      all_of[gang].push_back(1e3 * (last - begin));
      entered[gang].push_back(1e3 * (last - first));
    }
    heading(remote ? "Start, remote executor, an agent on this machine, ms" : "Start, processes, ms");
    row("four trials: from tune() to the first report of all", all_of[0]);
    row("one of four workers: the same", all_of[1]);
    row("four trials: from the first that begins to the first report of all", entered[0]);
    row("one of four workers: the same", entered[1]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  prepare({}, 64);
  if (argc > 3 && std::string_view(argv[1]) == "--agent") {
    events = std::make_unique<EventLog>(argv[3]);
    job.kind = Job::Kind::start;
    ht::remote::AgentOptions options;
    options.directory = argv[2];
    options.processes.pool = 4;
    options.processes.pin = false;
    return ht::remote::agent_main(
        [](const std::string&) { return ht::make_program<Config>(ht::detail::decoder(space()), train, "workers"); },
        options);
  }
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--trace")
      arguments.trace = true;
    else if (name == "--times")
      arguments.times = std::max(1, std::atoi(value)), ++i;
    else if (name == "--milliseconds")
      arguments.milliseconds = std::atof(value), ++i;
    else if (name == "--json")
      json.open(value, std::ios::app), ++i;
    else
      arguments.parts.insert(name);
  }
  const auto wanted = [&](const char* part) { return arguments.parts.empty() || arguments.parts.contains(part); };
  const auto self = fs::read_symlink("/proc/self/exe").string();
  try {
    const int batch = calibrated(arguments.milliseconds);
    fmt::print("{} samples take {} ms\n", batch, arguments.milliseconds);
    prepare({}, batch);
    if (wanted("kill")) {
      measure_kills(arguments, {.min = 3, .max = 4}, "One of 4 workers is killed, 3 go on");
      measure_kills(arguments, {4}, "One of 4 workers is killed and replaced");
    }
    if (wanted("grow")) measure_growth(arguments);
    if (wanted("scale")) measure_scale(arguments);
    if (wanted("steady")) {
      measure_steady("Steady state", 60 * arguments.times);
      prepare({.inputs = 16, .hidden = 16, .outputs = 4}, 8);
      measure_steady("Steady state, a tiny network", 1000 * arguments.times);
    }
    prepare({}, 64);
    if (wanted("start")) measure_starts(arguments, self);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
