// Part of hypertune::k8s.
#include "engine.hpp"

#include <hypertune/detail/say.hpp>
#include <hypertune/detail/signal_block.hpp>
#include <hypertune/net/spawn.hpp>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace hypertune::inline v0::k8s::detail {

namespace {

/// Seconds until credentials are fetched again after a failure (files being replaced, a plugin's service unavailable).
/// Meanwhile the old ones are used.
constexpr double fetch_again = 5;

/// Tells a task's end, also where an exception has destroyed the coroutine before its end.
class TaskEnd {
 public:
  explicit TaskEnd(std::promise<std::exception_ptr>& end) : end_(end) {}
  TaskEnd(const TaskEnd&) = delete;
  TaskEnd& operator=(const TaskEnd&) = delete;
  ~TaskEnd() {
    if (!set_) set(std::make_exception_ptr(Error(Errc::io, "a call of the Kubernetes client has failed")));
  }
  void set(std::exception_ptr error) {
    set_ = true;
    end_.set_value(std::move(error));
  }

 private:
  std::promise<std::exception_ptr>& end_;
  bool set_ = false;
};

const std::string& server_name_of(const Access& access, const Url& url) {
  return access.tls_server_name.empty() ? url.host : access.tls_server_name;
}

ServerPlace place_of(const Access& access) {
  const auto parsed = [](const std::string& text, const char* what) {
    auto url = parse_url(text);
    if (!url) fail(Errc::input, "{} is no URL", what);
    return *std::move(url);
  };
  ServerPlace place{.url = parsed(access.server, "the API server's address"),
                    .what = "the API server",
                    .trust = "is certificate-authority that of this cluster, and tls-server-name right?"};
  if (!access.proxy.empty()) place.proxy = parsed(access.proxy, "the proxy");
  return place;
}

}  // namespace

Engine::Engine(Access access, ClientOptions options)
    : access_(std::move(access)),
      options_(std::move(options)),
      dialer_(io_, place_of(access_)),
      pool_(io_, dialer_, std::max<std::size_t>(options_.connections, 1)),
      limit_(options_.rate, options_.burst),
      source_(access_, server_name_of(access_, dialer_.url()), dialer_.uses_tls()),
      fetched_(io_, asio::steady_timer::time_point::max()) {
  const hypertune::detail::SignalBlock block;  // signals are for the program's other threads
  worker_.emplace(1);
  thread_ = std::thread([this] {
    hypertune::detail::run_handlers(io_, [failed = std::make_shared<hypertune::detail::FailedConnections>(
                                              "the API server")](const std::string& why) { failed->note(why); });
  });
}

Engine::~Engine() {
  ending_.request_stop();
  worker_->join();
  asio::post(io_, [this] {
    pool_.clear();
    guard_.reset();
  });
  thread_.join();
}

void Engine::fetch(std::uint64_t refused) {
  fetching_ = true;
  hypertune::detail::run_apart(*worker_, [this, refused] {
    std::exception_ptr error;
    std::shared_ptr<const Credential> fetched;
    try {
      fetched = source_.fetch(refused != 0, ending_.get_token());
    } catch (...) { error = std::current_exception(); }
    asio::post(io_, [this, error, fetched, due_at = error ? now() + fetch_again : source_.check_at()] {
      fetching_ = false;
      due_at_ = due_at;
      fetch_error_ = error;
      if (fetched) credential_ = fetched;
      fetched_.cancel();
    });
  });
}

asio::awaitable<std::shared_ptr<const Credential>> Engine::credential(std::uint64_t refused) {
  for (bool first = true;; first = false) {
    const bool there = credential_ != nullptr;
    const bool not_taken =
        there && refused != 0 && credential_->generation == refused && now() - refused_at_ > fetch_again;
    if (there && !not_taken && (now() < due_at_ || !first)) co_return credential_;
    if (!there && !first && !fetching_ && fetch_error_) std::rethrow_exception(fetch_error_);
    if (!fetching_) {
      if (not_taken) refused_at_ = now();
      fetch(not_taken ? refused : 0);
    }
    error_code woken;
    co_await fetched_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
}

asio::awaitable<bool> Engine::turn(double seconds) {
  const double pause = limit_.take(now());
  if (pause > seconds) co_return false;
  if (pause > 0) co_await sleep_for(io_, pause);
  co_return true;
}

asio::awaitable<Dialed> Engine::dial(std::shared_ptr<const Credential> credential, double seconds) {
  Dialed dialed = co_await dialer_.dial(credential->tls, std::min(seconds, options_.connect));
  co_return dialed;
}

RequestText Engine::text_of(const char* method, const std::string& target) const {
  return {.method = method,
          .target = dialer_.url().path + target,
          .host = dialer_.url().authority(),
          .user_agent = options_.user_agent};
}

std::string Engine::bytes_of(RequestText text, const Credential& credential) const {
  return to_bytes(std::move(text), credential.headers);
}

Task Engine::spawn(asio::awaitable<void> work) {
  Task task;
  asio::post(io_, [this, state = task.state_, work = std::move(work)]() mutable {
    const auto end = std::make_shared<TaskEnd>(state->end);
    asio::co_spawn(io_, std::move(work),
                   asio::bind_cancellation_slot(
                       state->signal.slot(), [state, end](std::exception_ptr error) { end->set(std::move(error)); }));
  });
  return task;
}

void Engine::wait_for(asio::awaitable<void> work, const std::stop_token& stop) {
  if (on_own_thread())
    fail(Errc::usage,
         "a call of the Kubernetes client from within one of its handlers would wait for itself: make it "
         "from another thread");
  Task task = spawn(std::move(work));
  const std::stop_callback on_stop(stop, [&] { task.cancel(io_); });
  const std::exception_ptr error = task.state_->over.get();
  if (!error) return;
  const auto throw_if_stopped = [&] {
    if (stop.stop_requested()) throw ApiError(0, "Stopped", "stopped before the API server answered");
  };
  try {
    std::rethrow_exception(error);
  } catch (const boost::system::system_error& e) {
    throw_if_stopped();
    throw ApiError(0, "", fmt::format("no answer of the API server: {}", e.code().message()));
  } catch (const ApiError& e) {  // a connect that was cancelled looks like one that failed
    if (e.status() == 0) throw_if_stopped();
    throw;
  }
}

}  // namespace hypertune::inline v0::k8s::detail
