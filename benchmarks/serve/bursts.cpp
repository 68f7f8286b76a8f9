// Requests at times that are fixed beforehand (an open loop), in bursts or Poisson, to servers of models. An answer's time
// counts from when its request was to be sent, however late it was. See ../README.md.
//     benchmark_serve_bursts [--loads 0.6 …]        servers of a model that sleeps, with several rules for batches, in turn
//     benchmark_serve_bursts --url URL --body FILE --rates 20000 --size 1       a server that runs already
#include "../driver_measures.hpp"
#include "open_loop.hpp"
#include "support/temporary_directory.hpp"

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/hypertune.hpp>
#include <hypertune/serve/serve.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace ht = hypertune;
using namespace open_loop;

struct Arguments {
  double base = 0.004, each = 0.0001, objective = 0.010, spread = 0.003, seconds = 5;
  int replicas = 2, rows = 32, size = 60, rounds = 3;
  std::size_t connections = 1000;
  std::vector<double> loads{0.4, 0.6, 0.84, 1.0, 1.2}, rates, delays{0, 0.002, 0.005};
  std::string url, body;
  double capacity() const { return replicas * rows / (base + each * rows); }
};

/// Takes `base` + `each` x rows seconds without the processor, as a model on an accelerator does: client and server need
/// this machine's cores.
struct Sleeper {
  double base, each;
  ht::Signature signature() const { return {{{"x", ht::Datatype::fp32, {-1}}}, {{"y", ht::Datatype::fp32, {-1}}}}; }
  std::vector<ht::Tensor> predict(std::vector<ht::Tensor> inputs) const {
    std::this_thread::sleep_for(Seconds(base + each * static_cast<double>(inputs.front().rows())));
    inputs.front().name = "y";
    return inputs;
  }
};

ht::Training train(driver_measures::Config, ht::Context& context) {
  context.checkpoints([](ht::CheckpointWriter& out) { std::ofstream(out.file("empty")) << 0; },
                      [](const ht::Checkpoint&) {});
  co_yield ht::report("score", 0.0);
}

/// A server in a process of its own.
class Served {
 public:
  Served(const std::filesystem::path& folder, const Arguments& arguments, const ht::BatchOptions& batch) {
    auto [reads, writes] = ht::detail::make_pipe();
    process_ = ::fork();
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
      reads = {};
      ht::ServeOptions options;
      options.batch = batch;
      options.replicas.min_replicas = options.replicas.max_replicas = arguments.replicas;
      options.max_connections = static_cast<int>(arguments.connections) + 10;
      options.ready = [&](const std::string& address) {
        ht::detail::write_all(writes.get(), address.substr(address.rfind(':') + 1) + "\n");
      };
      try {
        const Sleeper model{arguments.base, arguments.each};
        ht::serve(folder, [model](const ht::ModelCheckpoint&) { return model; }, options);
      } catch (const std::exception& error) { ht::detail::say(error.what()); }
      ::_exit(0);
    }
    writes = {};
    std::string text;
    for (char c = 0; ht::detail::read_some(reads.get(), &c, 1) == 1 && c != '\n';) text += c;
    port_ = static_cast<std::uint16_t>(std::atoi(text.c_str()));
    if (port_ == 0) ht::fail(ht::Errc::io, "the server has not begun");
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  ~Served() {
    ::kill(process_, SIGTERM);
    ::waitpid(process_, nullptr, 0);
  }
  std::uint16_t port() const { return port_; }

 private:
  pid_t process_ = -1;
  std::uint16_t port_ = 0;
};

double quantile(std::vector<double> all, double q) {
  if (all.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(all.begin(), all.end());
  return all[std::min(all.size() - 1, static_cast<std::size_t>(q * static_cast<double>(all.size())))];
}

/// What is shown of one measurement: shares of the requests, and milliseconds.
std::map<std::string, double> figures(const std::vector<Answer>& answers, double objective, double warm) {
  std::vector<double> times, sent;
  double in_time = 0, refused = 0;
  for (const auto& one : answers) {
    if (one.due < warm) continue;
    sent.push_back(one.sent * 1000);
    if (one.status == 200) {
      times.push_back(one.took * 1000);
      in_time += one.took <= objective ? 1 : 0;
    } else {
      refused += 1;
    }
  }
  const auto all = static_cast<double>(sent.size());
  return {{"in time", in_time / all},     {"late", (static_cast<double>(times.size()) - in_time) / all},
          {"refused", refused / all},     {"p50", quantile(times, 0.5)},
          {"p99", quantile(times, 0.99)}, {"sent p99", quantile(sent, 0.99)}};
}

}  // namespace

int main(int argc, char** argv) try {
  Arguments arguments;
  CLI::App app("Requests at times that are fixed beforehand, to servers of models.", "benchmark_serve_bursts");
  app.add_option("--base", arguments.base, "Seconds of a batch")->capture_default_str();
  app.add_option("--each", arguments.each, "… and of each of its rows")->capture_default_str();
  app.add_option("--replicas", arguments.replicas)->capture_default_str();
  app.add_option("--max-batch-size", arguments.rows)->capture_default_str();
  app.add_option("--objective", arguments.objective, "Seconds")->capture_default_str();
  app.add_option("--delays", arguments.delays, "Of Triton's rule, seconds")->capture_default_str();
  app.add_option("--size", arguments.size, "Requests of a burst; 1: Poisson")->capture_default_str();
  app.add_option("--spread", arguments.spread, "Seconds in which they come")->capture_default_str();
  app.add_option("--loads", arguments.loads, "Parts of the rows that full batches allow")->capture_default_str();
  app.add_option("--rates", arguments.rates, "Requests a second, in place of --loads");
  app.add_option("--seconds", arguments.seconds)->capture_default_str();
  app.add_option("--rounds", arguments.rounds)->capture_default_str();
  app.add_option("--connections", arguments.connections)->capture_default_str();
  auto* url = app.add_option("--url", arguments.url, "Of a server on this machine, http://127.0.0.1:PORT/PATH");
  app.add_option("--body", arguments.body, "A file with the request's body")->needs(url);
  CLI11_PARSE(app, argc, argv);

  const TemporaryDirectory folder;
  std::map<std::string, std::unique_ptr<Served>> served;
  std::vector<std::pair<std::string, std::uint16_t>> rules;
  std::string target = "/v2/models/bursts/infer";
  std::string body = R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]}]})";
  if (arguments.url.empty()) {
    ht::Options options;
    options.name = "bursts";
    options.metric = "score";
    options.samples = 1;
    options.checkpoint.every = 1;
    options.executor = ht::run_inline();
    options.output = folder.path().string();
    options.display = ht::Display::quiet;
    ht::tune(driver_measures::space(), train, std::move(options));
    const auto add = [&](const std::string& name, ht::BatchOptions options) {
      options.max_batch_size = arguments.rows;
      served[name] = std::make_unique<Served>(folder.path(), arguments, options);
      rules.emplace_back(name, served[name]->port());
    };
    add("by deadline", {.latency_objective = arguments.objective});
    add("no objective", {});
    for (const double delay : arguments.delays)
      add(fmt::format("Triton's, {:g} ms", delay * 1000), {.batching = ht::Batching::fixed_delay, .max_delay = delay});
  } else {
    const auto colon = arguments.url.rfind(':'), path = arguments.url.find('/', colon + 3);
    if (path == std::string::npos) ht::fail(ht::Errc::usage, "--url needs a port and a path");
    rules.emplace_back("URL", static_cast<std::uint16_t>(std::atoi(arguments.url.c_str() + colon + 1)));
    target = arguments.url.substr(path);
    std::ifstream in(arguments.body);
    body.assign(std::istreambuf_iterator<char>(in), {});
  }
  if (arguments.rates.empty())
    for (const double load : arguments.loads) arguments.rates.push_back(load * arguments.capacity());

  constexpr double warm = 1;  // seconds that do not count
  fmt::print("medians of {} rounds of {:g} s; an answer with status 200 within {:g} ms is in time\n", arguments.rounds,
             arguments.seconds, arguments.objective * 1000);
  fmt::print("| requests/s | load | rule | in time | late | refused | p50 ms | p99 ms | sent late, p99 ms |\n");
  fmt::print("|---:|---:|---|---:|---:|---:|---:|---:|---:|\n");
  for (const double rate : arguments.rates) {
    std::map<std::string, std::map<std::string, std::vector<double>>> found;
    for (int round = 0; round < arguments.rounds; ++round) {
      const auto due = trace(rate, arguments.size, arguments.spread, warm + arguments.seconds,
                             static_cast<std::uint64_t>(round) + 1);
      for (std::size_t i = 0; i < rules.size(); ++i) {  // each is the first one in turn
        const auto& [name, port] = rules[(i + static_cast<std::size_t>(round)) % rules.size()];
        const auto answers = Client(port, arguments.connections, target, body).run(due);
        for (const auto& [what, value] : figures(answers, arguments.objective, warm))
          found[name][what].push_back(value);
      }
    }
    for (const auto& [name, port] : rules) {
      const auto median = [&, &name = name](const char* what) { return quantile(found[name][what], 0.5); };
      fmt::print("| {:.0f} | {:.2f} | {} | {:.3f} | {:.3f} | {:.3f} | {:.2f} | {:.2f} | {:.2f} |\n", rate,
                 rate / arguments.capacity(), name, median("in time"), median("late"), median("refused"), median("p50"),
                 median("p99"), median("sent p99"));
      std::fflush(stdout);
    }
  }
} catch (const std::exception& error) {
  ht::detail::say(std::string("benchmark_serve_bursts: ") + error.what());
  return 1;
}
