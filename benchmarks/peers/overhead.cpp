// What hypertune adds to trials that do nothing.
// peer_overhead noop threads|processes TRIALS AT_ONCE csv|bare SEARCHER OUTPUT   trials of one report; processes are
// reused peer_overhead asha TRIALS STEPS AT_ONCE csv|bare SEARCHER OUTPUT               reports through ASHA, by
// threads (csv: with the progress.csv of each trial, as by default; bare: the Journal alone; SEARCHER: random or
// default) peer_overhead start OUTPUT                                   when the first report was made (Unix time)
// peer_overhead save MIB SAVES PAUSE_MS OUTPUT                 a trial that writes a checkpoint in each step
#include "support.hpp"

#include <atomic>
#include <thread>

using namespace peers;

namespace {

// Has reset(), so that a process goes on with the next trial.
struct Noop {
  explicit Noop(const Config& c) : config(c) {}
  ht::Report step() { return ht::report("x", config.a); }
  void save(ht::CheckpointWriter&) const {}
  void restore(const ht::Checkpoint&) {}
  bool reset(const Config& c) {
    config = c;
    return true;
  }
  Config config;
};

int noop(const std::string& kind, int trials, int at_once, bool csv, const std::string& search,
         const std::string& output) {
  auto o = options(output, trials, search);
  o.executor = executor(kind, at_once);
  o.stop = ht::steps(1);
  o.checkpoint.at_end = false;
  o.progress_csv = csv;
  const double begin = monotonic();
  const auto results = ht::tune<Noop>(space(), o);
  const double seconds = monotonic() - begin;
  fmt::print(R"({{"trials": {}, "seconds": {}, "per_s": {}, "peak_mib": {}}})"
             "\n",
             results.size(), seconds, double(results.size()) / seconds, peak_mib());
  return int(results.size()) == trials ? 0 : 1;
}

int asha(int trials, int steps, int at_once, bool csv, const std::string& search, const std::string& output) {
  std::atomic<long> reports = 0;
  auto o = options(output, trials, search);
  o.executor = executor("threads", at_once);
  o.progress_csv = csv;
  o.schedule = ht::Asha{.grace_period = 1, .max_steps = steps, .reduction_factor = 3};
  const auto train = [&reports, steps](Config config) -> ht::Training {
    for (int i = 0; i < steps; ++i) {
      reports.fetch_add(1, std::memory_order_relaxed);
      co_yield ht::report("x", config.a * (i + 1));
    }
  };
  const double begin = monotonic();
  const auto results = ht::tune(space(), train, o);
  const double seconds = monotonic() - begin;
  fmt::print(R"({{"trials": {}, "reports": {}, "seconds": {}, "per_s": {}, "peak_mib": {}}})"
             "\n",
             results.size(), reports.load(), seconds, double(reports) / seconds, peak_mib());
  return 0;
}

int start(const std::string& output) {
  double first = 0;
  const auto train = [&first](Config config) -> ht::Training {
    first = epoch();
    co_yield ht::report("x", config.a);
  };
  ht::tune(space(), train, options(output, 1));
  fmt::print(R"({{"first_report": {:.6f}, "peak_mib": {}}})"
             "\n",
             first, peak_mib());
  return 0;
}

// The trial's own write is the plain write to the page cache that a user's code does; everything else between one step
// and the next is what a checkpoint adds.
int save(int mib, int saves, int pause_ms, const std::string& output) {
  std::vector<double> own, whole;
  const std::string data(std::size_t(mib) << 20, 'x');
  double last = 0, written = 0;
  const auto train = [&](Config config, ht::Context& context) -> ht::Training {
    context.checkpoints(
        [&](ht::CheckpointWriter& out) {
          const double begin = monotonic();
          std::ofstream file(out.file("model.bin"), std::ios::binary);
          file.write(data.data(), std::streamsize(data.size()));
          file.close();
          written = monotonic() - begin;
          if (!file) ht::fail(ht::Errc::io, "cannot write the checkpoint: is the disk full?");
        },
        [](const ht::Checkpoint&) {});
    for (int i = 0; i < saves; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));  // the training between two saves
      last = monotonic();
      co_yield ht::report("x", config.a);
      whole.push_back(monotonic() - last);
      own.push_back(written);
    }
  };
  auto o = options(output, 1);
  o.checkpoint.every = mib > 0 ? 1 : 0;
  ht::tune(space(), train, o);
  fmt::print(R"({{"whole_s": [{}], "own_s": [{}]}})"
             "\n",
             fmt::join(whole, ", "), fmt::join(own, ", "));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](const std::vector<std::string>& a) {
    if (a.size() == 7 && a[0] == "noop") return noop(a[1], number(a[2]), number(a[3]), a[4] == "csv", a[5], a[6]);
    if (a.size() == 7 && a[0] == "asha")
      return asha(number(a[1]), number(a[2]), number(a[3]), a[4] == "csv", a[5], a[6]);
    if (a.size() == 2 && a[0] == "start") return start(a[1]);
    if (a.size() == 5 && a[0] == "save") return save(number(a[1]), number(a[2]), number(a[3]), a[4]);
    ht::fail(ht::Errc::usage, "peer_overhead noop|asha|start|save …: see the head of overhead.cpp");
  });
}
