// serve(): the server, the thread that looks for better checkpoints, and signals.
#include "server.hpp"

#include <hypertune/detail/as_duration.hpp>
#include <hypertune/detail/no_sigpipe.hpp>
#include <hypertune/detail/read_file.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/signal_block.hpp>
#include <hypertune/detail/wakeup_event.hpp>
#include <hypertune/local/slot_binding.hpp>
#include <hypertune/net/failed_connections.hpp>
#include <hypertune/record/journal_schema.hpp>
#include <hypertune/serve/serve.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include <csignal>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::serving {

namespace {

namespace asio = boost::asio;

constexpr double look_seconds = 1;  // between two looks at the record
constexpr double echo_seconds = 1;  // within which a second signal is that of the first wish

void check(const ServeOptions& options, const detail::ServedProgram& program) {
  const auto require = [](bool right, const char* what) {
    if (!right) fail(Errc::usage, "serve: {}", what);
  };
  const auto& replicas = options.replicas;
  require(replicas.min_replicas >= 1 && replicas.min_replicas <= 256, "min_replicas is 1 to 256");
  require(replicas.max_replicas <= 256, "max_replicas is 256 at most");
  require(replicas.target_ongoing_requests > 0, "target_ongoing_requests is above 0");
  require(replicas.start_timeout > 0 && replicas.hang_timeout > 0, "start_timeout and hang_timeout are above 0");
  require(options.batch.max_batch_size >= 1, "max_batch_size is 1 or more");
  require(options.batch.max_queued_requests >= 1, "max_queued_requests is 1 or more");
  const auto within = [](double value, double least) { return value >= least && value <= 1e9; };  // and no NaN
  require(within(replicas.upscale_delay, 0) && within(replicas.downscale_delay, 0), "a delay is 0 or more seconds");
  require(within(replicas.cpus, 0) && within(replicas.gpus, 0), "cpus and gpus are 0 or more");
  require(replicas.cpus <= static_cast<double>(local::usable_cores().size()),
          "a replica cannot have more cores than there are");
  require(within(options.batch.latency_objective, 0), "latency_objective is 0 or more seconds");
  require(options.batch.latency_objective == 0 || options.batch.batching == Batching::by_deadline,
          "a fixed delay and a latency_objective exclude each other");
  require(within(options.batch.max_delay, 0), "max_delay is 0 or more seconds");
  require(within(options.request_timeout, 0.001), "request_timeout is above 0 seconds");
  require(within(options.drain_grace, 0), "drain_grace is 0 or more seconds");
  require(within(options.canary_time, 0), "canary_time is 0 or more seconds");
  require(options.max_body >= 1 && options.max_body <= (std::size_t{1} << 31U), "max_body is 1 byte to 2 GiB");
  require(options.max_connections >= 1, "max_connections is 1 or more");
  require(options.name.find_first_of("/?#% ") == std::string::npos, "a name has no space, and none of / ? # %");
  require(options.canary_share >= 0 && options.canary_share < 1, "canary_share is from 0 to below 1");
  require(program.make || !program.command.empty(), "there is no command");
}

std::optional<InferenceRequest> validation_of(const ServeOptions& options) {
  if (options.validation.empty()) return std::nullopt;
  const auto text = hypertune::detail::read_file(options.validation);
  if (!text) fail(Errc::usage, "cannot read '{}'", options.validation.string());
  try {
    return decode_request(*text);
  } catch (const Error& error) {
    fail(Errc::input, "'{}' is no inference request: {}", options.validation.string(), error.what());
  }
}

/// With `follow` the experiment may begin later than the server. It has begun when its first record, which has its name, is
/// there.
void await_experiment(const std::filesystem::path& directory) {
  const auto begun = [&] {
    if (!has_journal(directory)) return false;
    Results results(directory);
    results.update();
    return !results.experiment().name.empty();
  };
  for (bool told = false; !begun(); std::this_thread::sleep_for(hypertune::detail::as_duration(look_seconds)))
    if (!std::exchange(told, true))
      hypertune::detail::say(
          fmt::format("hypertune: there is no experiment in '{}' yet: the server waits for it, and has no "
                      "address until then",
                      directory.string()));
}

/// Looks for better checkpoints, on a thread of its own: reading, checking and linking files takes its time.
class Follower {
 public:
  /// `found` and `trouble` are called on the follower's thread.
  Follower(ModelSource& source, bool follow, std::string pin, std::string current,
           std::function<void(std::shared_ptr<const ModelFiles>, bool pinned)> found,
           std::function<void(std::string)> trouble)
      : source_(source),
        follow_(follow),
        pin_(std::move(pin)),
        current_(std::move(current)),
        found_(std::move(found)),
        trouble_(std::move(trouble)) {
    const hypertune::detail::SignalBlock block;
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;
  ~Follower() {
    thread_.request_stop();
    wake_.signal();
  }

  /// `found`: see Server::pin; called on the follower's thread.
  void pin(const std::string& version, Server::Found found) {
    {
      const std::lock_guard guard(mutex_);
      if (found) {
        asked_.push_back({version, std::move(found)});
      } else {
        pin_ = current_ = version;
      }
    }
    wake_.signal();
  }

 private:
  struct Asked {
    std::string version;
    Server::Found found;
  };

  void run(const std::stop_token& stop) {
    bool first = true;
    while (!stop.stop_requested()) {
      std::string pin;
      std::vector<Asked> asked;
      {
        const std::lock_guard guard(mutex_);
        asked = std::exchange(asked_, {});
        pin = pin_;
      }
      try {
        const bool changed = source_.update();
        if (follow_ && asked.empty() && pin.empty() && (changed || first)) look(pin);
        first = false;
      } catch (...) { trouble_(hypertune::detail::text_of_error(std::current_exception())); }
      for (const auto& one : asked) try {
          look(one.version);
          one.found({});
        } catch (...) { one.found(hypertune::detail::text_of_error(std::current_exception())); }
      wake_.wait_for(look_seconds);
    }
  }
  // `pin`: the version that is wanted; "": the best.
  void look(const std::string& pin) {
    std::string current, pinned;
    {
      const std::lock_guard guard(mutex_);
      current = current_;
      pinned = pin_;
    }
    auto files = source_.newest(pin, current);
    {
      const std::lock_guard guard(mutex_);
      if (pin_ != pinned) return;  // another one was pinned meanwhile
      pin_ = pin;
      if (files) current_ = files->version;
    }
    if (files) found_(std::move(files), !pin.empty());
  }

  ModelSource& source_;
  const bool follow_;
  std::mutex mutex_;
  std::string pin_, current_;
  std::vector<Asked> asked_;
  std::function<void(std::shared_ptr<const ModelFiles>, bool)> found_;
  std::function<void(std::string)> trouble_;
  hypertune::detail::WakeupEvent wake_;
  std::jthread thread_;
};

}  // namespace

}  // namespace hypertune::inline v0::serving

namespace hypertune::inline v0::detail {

void serve(const std::filesystem::path& directory, const ServedProgram& program, const ServeOptions& options) {
  using namespace serving;
  check(options, program);
  ReplicaStarter starter(program, options.replicas);  // forks: before any thread
  if (options.follow) await_experiment(directory);    // signals end the process until then
  const NoSigpipe no_signal;                          // a replica may die at any time
  const ServingFolder folder(directory);
  ModelSource source(directory, folder.path());
  auto first = source.newest(options.pin, {});
  if (!first && !options.follow)
    fail(Errc::experiment,
         "no trial of '{}' has a checkpoint that can be served; with --follow the server waits for one",
         directory.string());
  Server server(options.name.empty() ? source.experiment().name : options.name, options, starter,
                validation_of(options));
  auto& io = server.context();
  std::optional<std::string> end;  // why it ended by itself
  server.rollout().changed = [&] {
    if (server.rollout().without_model() && !options.follow) {
      end = server.rollout().rejection();
      server.stop();
    }
    server.give_up_pin();
  };
  const std::string current = first ? first->version : std::string();
  if (first)
    server.rollout().offer(std::move(first));
  else
    say("hypertune: no trial has a checkpoint yet: the server waits for one");
  Follower follower(
      source, options.follow, options.pin, current,
      [&](std::shared_ptr<const ModelFiles> files, bool pinned) {
        asio::post(io, [&, files = std::move(files), pinned] { server.rollout().offer(files, pinned); });
      },
      [told = std::string()](const std::string& why) mutable {
        if (std::exchange(told, why) != why) say("hypertune: the experiment cannot be read: " + why);
      });
  server.pin = [&](const std::string& version, Server::Found found) {
    if (!found) return follower.pin(version, {});
    follower.pin(version, [&io, found = std::move(found)](const std::string& trouble) {
      asio::post(io, [found, trouble] { found(trouble); });
    });
  };

  asio::signal_set signals(io, SIGINT, SIGTERM);
  struct sigaction hangup{};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) signals.add(SIGHUP);  // ignored: nohup
  // One wish may be heard twice: scancel sends SIGTERM to all processes of a job, and its batch script passes on its own,
  // some milliseconds later.
  std::optional<double> told;
  std::function<void()> listen = [&] {
    signals.async_wait([&](const boost::system::error_code& error, int number) {
      if (error) return;
      const double now = hypertune::detail::steady_seconds();
      if (told && (number == SIGINT || now - *told >= echo_seconds)) return server.stop();
      if (!told) {
        told = now;
        server.drain();
      }
      listen();
    });
  };
  listen();
  server.publish(folder.path() / "status.json");
  if (options.ready) options.ready(server.address());
  if (!server.token().empty())
    say(fmt::format("hypertune: clients need the token{} and accept the certificate of SHA-256 {}",
                    options.token.empty() ? " " + server.token() : std::string(" of the file"), server.fingerprint()));
  server.run();
  if (end) fail(Errc::experiment, "{}", *end);
}

}  // namespace hypertune::inline v0::detail
