// Engine: a client's thread and the state shared by everything that runs on it.
#pragma once

#include "credential_source.hpp"
#include "http.hpp"
#include "pool.hpp"
#include "retry.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/k8s/client.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace hypertune::inline v0::k8s::detail {

/// A coroutine that a thread can wait for and cancel.
class Task {
 public:
  /// May be called from any thread. The coroutine then throws at its current wait.
  void cancel(asio::io_context& io) {
    asio::post(io, [self = state_] { self->signal.emit(asio::cancellation_type::terminal); });
  }
  /// Waits for its end. Must not be called on the client's thread.
  void join() const { state_->over.wait(); }
  bool over_within(double seconds) const {
    return state_->over.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready;
  }

 private:
  friend class Engine;
  struct State {
    asio::cancellation_signal signal;
    std::promise<std::exception_ptr> end;
    std::shared_future<std::exception_ptr> over = end.get_future().share();
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// Thrown by a receiver of a streamed body that wants no more of it.
struct StreamAbandoned {};

/// The result of one attempt of a call.
struct Attempt {
  Outcome outcome;
  std::string body;
  std::uint64_t generation = 0;  // of the credentials
};

/// Its member coroutines run on the client's thread.
class Engine {
 public:
  Engine(Access access, ClientOptions options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  /// All coroutines must have ended before. Must not be called on the client's thread.
  ~Engine();

  asio::io_context& io() { return io_; }
  static double now() { return hypertune::detail::steady_seconds(); }
  const Access& access() const { return access_; }
  const ClientOptions& options() const { return options_; }
  double uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  bool on_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

  /// Throws an Error if there are no credentials, or if it is cancelled. `refused`: a generation that the server
  /// rejected.
  asio::awaitable<std::shared_ptr<const Credential>> credential(std::uint64_t refused = 0);
  /// Waits for its turn under the rate limit. False: that would take longer than `seconds`.
  asio::awaitable<bool> turn(double seconds);
  asio::awaitable<Dialed> dial(std::shared_ptr<const Credential> credential, double seconds);
  /// The request as bytes, for any connection.
  std::string bytes_of(RequestText text, const Credential& credential) const;
  RequestText text_of(const char* method, const std::string& target) const;

  /// Makes one attempt, on a connection of the pool. Throws if there are no credentials.
  asio::awaitable<Attempt> attempt(const Request& request, double seconds, std::uint64_t refused);
  /// Makes one attempt of a GET, on a connection of its own, and passes on the answer's body as it arrives.
  asio::awaitable<Outcome> stream(const std::string& target, double seconds, ResponseReader& reader,
                                  const std::function<void()>& headed);
  asio::awaitable<Answer> call(Request request);

  /// Starts it. What it refers to must live until Task::join().
  Task spawn(asio::awaitable<void> work);
  /// Runs it and waits for the result; `stop` cancels it.
  template <class T>
  T wait(asio::awaitable<T> work, const std::stop_token& stop) {
    auto result = std::make_shared<std::optional<T>>();
    wait_for(store(std::move(work), result), stop);
    return std::move(**result);
  }

 private:
  template <class T>
  static asio::awaitable<void> store(asio::awaitable<T> work, std::shared_ptr<std::optional<T>> result) {
    T value = co_await std::move(work);
    result->emplace(std::move(value));
  }
  void wait_for(asio::awaitable<void> work, const std::stop_token& stop);
  void fetch(std::uint64_t refused);

  Access access_;
  ClientOptions options_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard_{io_.get_executor()};
  ServerDialer dialer_;
  Pool pool_;
  RateLimit limit_;
  std::minstd_rand random_{std::random_device{}()};

  // Credentials. While a fetch runs, only the worker thread uses the source.
  CredentialSource source_;
  std::shared_ptr<const Credential> credential_;
  double due_at_ = 0, refused_at_ = -1e9;
  bool fetching_ = false;
  std::exception_ptr fetch_error_;
  asio::steady_timer fetched_;  // never expires; cancel() wakes all
  std::stop_source ending_;
  std::optional<asio::thread_pool> worker_;

  std::thread thread_;
};

}  // namespace hypertune::inline v0::k8s::detail

namespace hypertune::inline v0::k8s {
struct Client::State : detail::Engine {
  using Engine::Engine;
};
}  // namespace hypertune::inline v0::k8s
