// ReverseDialer: a stream to the agent of a worker that connects by itself.
#include "connect_request.hpp"
#include "listener_state.hpp"

#include <hypertune/detail/as_duration.hpp>
#include <hypertune/detail/socket_pair.hpp>
#include <hypertune/error.hpp>

#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

using hypertune::detail::Descriptor;
using remote::DialError;
using remote::FailureClass;

}  // namespace

ReverseDialer::Place::Place(std::shared_ptr<AgentListener::State> state, std::string name, double seconds,
                            std::function<void()> on_connection)
    : listener(std::move(state)), worker(std::move(name)), patience(seconds), connected(std::move(on_connection)) {
  const std::lock_guard lock(listener->mutex);
  if (!listener->places.emplace(worker, this).second)
    fail(Errc::usage, "there is a dialer for the worker '{}' already", worker);
}

ReverseDialer::Place::~Place() { listener->drop(*this); }

ReverseDialer::ReverseDialer(AgentListener listener, std::string worker, double patience,
                             std::function<void()> connected) {
  if (!is_worker_name(worker))
    fail(Errc::usage, "'{}' is not a valid name of a worker: write letters, digits, '.', '_' and '-'", worker);
  place_ = std::make_shared<Place>(std::move(listener.state_), std::move(worker), patience, std::move(connected));
}

const std::string& ReverseDialer::worker() const { return place_->worker; }

remote::AgentStream ReverseDialer::dial(std::stop_token stop, const FailureCheck& check) const {
  auto [stream, our_stream] = hypertune::detail::make_socket_pair();
  auto [err, our_err] = hypertune::detail::make_socket_pair();
  Descriptor second(::fcntl(stream.get(), F_DUPFD_CLOEXEC, 0));
  if (!second)
    throw DialError(FailureClass::transient, "cannot open a stream: " + std::generic_category().message(errno));
  auto& place = *place_;
  auto& state = *place.listener;
  std::unique_lock lock(state.mutex);
  if (state.closed) throw DialError(FailureClass::transient, "the driver listens no more");
  if (place.refused) throw DialError(place.refused->failure, place.refused->why);
  const auto pending = state.request(place, {std::move(our_stream), std::move(our_err)});
  if (place.patience > 0) {
    const auto settled = [&] { return pending->taken || pending->over; };
    const auto until = std::chrono::steady_clock::now() + hypertune::detail::as_duration(place.patience);
    std::optional<DialError> failure;
    while (!failure && !settled() && !stop.stop_requested() && std::chrono::steady_clock::now() < until) {
      constexpr std::chrono::seconds check_every{1};
      if (!check) {
        state.changed.wait_until(lock, stop, until, settled);
      } else if (!state.changed.wait_until(lock, stop, std::min(until, std::chrono::steady_clock::now() + check_every),
                                           settled)) {
        lock.unlock();
        failure = check();
        lock.lock();
      }
    }
    if (!pending->taken) {
      if (place.waiting == pending) place.waiting = nullptr;
      if (failure) throw *std::move(failure);
      if (pending->over) throw DialError(pending->failure, pending->why);
      if (stop.stop_requested()) throw DialError(FailureClass::transient, "it was not waited for any longer");
      throw DialError(FailureClass::transient, place.why.empty()
                                                   ? fmt::format("it has not connected within {:g} s", place.patience)
                                                   : place.why);
    }
  }
  return {.to = std::move(second),
          .from = std::move(stream),
          .err = std::move(err),
          .carrier = remote::StreamCarrier(
              [place = place_, pending](double grace) { place->listener->end(*place, pending, grace); })};
}

remote::FailureClass ReverseDialer::classify(const std::string& said) const {
  {
    const std::lock_guard lock(place_->listener->mutex);
    if (place_->refused) return place_->refused->failure;
  }
  // Messages of the loader and the shell about a program that cannot run there.
  for (const char* lasting : {"error while loading shared libraries", "cannot run '", "Exec format error"})
    if (said.find(lasting) != std::string::npos) return FailureClass::permanent;
  for (const char* passing : {"the connection was lost", "no sign of life", "takes its place", "the driver "})
    if (said.find(passing) != std::string::npos) return FailureClass::transient;
  return FailureClass::unknown;
}

void ReverseDialer::set_waiting_reason(std::string why) const {
  const std::lock_guard lock(place_->listener->mutex);
  place_->why = std::move(why);
  place_->refused.reset();
}

void ReverseDialer::refuse(remote::FailureClass failure, std::string why) const {
  const std::lock_guard lock(place_->listener->mutex);
  place_->refused = {failure, why};
  if (place_->waiting) place_->listener->refuse(std::exchange(place_->waiting, nullptr), failure, why);
}

}  // namespace hypertune::inline v0::k8s
