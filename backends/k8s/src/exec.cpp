// Part of hypertune::k8s: commands in pods, to be waited for or as streams of agents.
#include "exec_task.hpp"
#include "status.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace hypertune::inline v0::k8s {

namespace {

using detail::Descriptor;
using detail::ExecTask;

/// Moves bytes between the caller and the task's sockets until both outputs have ended.
class ExecLoop {
 public:
  ExecLoop(ExecTask& task, const ExecOptions& options, ExecResult& result)
      : task_(task), options_(options), result_(result) {}

  enum class End : std::uint8_t { over, late, too_much, enough };

  End run(double until) {
    double moved_at = detail::Engine::now();
    std::uint64_t moved = 0;
    while (task_.from || task_.err) {
      refill();
      const double now = detail::Engine::now();
      if (const auto count = task_.moved(); count != moved) {
        moved = count;
        moved_at = now;
      }
      const double bound = std::min(until, moved_at + options_.stall);
      if (now >= bound) return End::late;
      std::array<pollfd, 3> polled{pollfd{.fd = piece_.empty() ? -1 : task_.to.get(), .events = POLLOUT, .revents = 0},
                                   pollfd{.fd = task_.from.get(), .events = POLLIN, .revents = 0},
                                   pollfd{.fd = task_.err.get(), .events = POLLIN, .revents = 0}};
      const int ms = static_cast<int>(std::clamp((bound - now) * 1000 + 1, 1.0, 1000.0));
      if (::poll(polled.data(), polled.size(), ms) <= 0) continue;
      if (polled[0].revents != 0) write();
      for (const auto& [index, from, take, into] : {std::tuple(1, &task_.from, &options_.take_out, &result_.out),
                                                    std::tuple(2, &task_.err, &options_.take_err, &result_.err)})
        if (polled[static_cast<std::size_t>(index)].revents != 0)
          if (const End end = read(*from, *take, *into, sizes_[static_cast<std::size_t>(index) - 1]); end != End::over)
            return end;
    }
    return End::over;
  }

 private:
  void refill() {
    if (!task_.to || !piece_.empty() || input_over_) return;
    piece_ = options_.input ? options_.input() : std::string_view();
    input_over_ = piece_.empty();
    if (input_over_ && !options_.hold_input) task_.to = Descriptor();
  }

  void write() {
    const ssize_t n = ::send(task_.to.get(), piece_.data(), piece_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) piece_.remove_prefix(static_cast<std::size_t>(n));
    if (n >= 0 || errno == EAGAIN || errno == EINTR) return;
    result_.input_cut = true;
    piece_ = {};
    task_.to = Descriptor();
  }

  End read(Descriptor& from, const std::function<bool(std::string_view)>& take, std::string& into, std::size_t& sum) {
    const ssize_t n = ::recv(from.get(), buffer_.get(), buffer_size, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return End::over;
    if (n <= 0) {
      from = Descriptor();
      return End::over;
    }
    const std::string_view bytes(buffer_.get(), static_cast<std::size_t>(n));
    sum += bytes.size();
    if (sum > options_.max_output) return End::too_much;
    if (!take)
      into += bytes;
    else if (!take(bytes))
      return End::enough;
    return End::over;
  }

  static constexpr std::size_t buffer_size = std::size_t{256} << 10U;
  ExecTask& task_;
  const ExecOptions& options_;
  ExecResult& result_;
  std::string_view piece_;
  bool input_over_ = false;
  std::array<std::size_t, 2> sizes_{};
  std::unique_ptr<char[]> buffer_ = std::make_unique_for_overwrite<char[]>(buffer_size);
};

}  // namespace

ExecResult Client::run(const PodCommand& what, const ExecOptions& options, std::stop_token stop) {
  const double until = detail::Engine::now() + options.deadline;
  const bool input = options.input || options.hold_input;
  ExecTask task(state_, what, {.in = input, .must_end_input = input && !options.hold_input, .explain = false});
  task.open(options.deadline, stop);
  if (!input) task.to = Descriptor();
  task.start();
  ExecResult result;
  using End = ExecLoop::End;
  End end = End::over;
  {
    const std::stop_callback on_stop(stop, [&] { task.cancel(); });
    end = ExecLoop(task, options, result).run(until);
  }
  const bool whole = end == End::over;
  task.end(whole ? 5 : 0);
  const std::string doing = fmt::format("exec in {}", what.pod);
  if (stop.stop_requested())
    throw ApiError(0, "Stopped", fmt::format("stopped before the command had ended ({})", doing));
  if (end == End::late)
    throw ApiError(0, "Timeout",
                   fmt::format("{} ({})",
                               detail::Engine::now() >= until
                                   ? fmt::format("the command took longer than {:g} s", options.deadline)
                                   : fmt::format("no byte has moved for {:g} s", options.stall),
                               doing));
  if (end == End::too_much) fail(Errc::protocol, "the command said more than {} bytes ({})", options.max_output, doing);
  if (end == End::enough) return result;
  const auto& how = task.how();
  if (!how.known) throw ApiError(0, "", fmt::format("the connection to the pod is lost: {} ({})", how.message, doing));
  if (!how.exited) throw ApiError(how.status, how.reason, fmt::format("{} ({})", how.message, doing));
  result.exit = how.code;
  return result;
}

remote::AgentStream Client::open_stream(const PodCommand& what, std::stop_token stop, Seconds deadline) {
  auto task =
      std::make_shared<ExecTask>(state_, what, ExecTask::Wanted{.in = true, .must_end_input = false, .explain = true});
  task->open(deadline, stop);
  task->start();
  remote::AgentStream stream;
  stream.to = std::move(task->to);
  stream.from = std::move(task->from);
  stream.err = std::move(task->err);
  stream.carrier = remote::StreamCarrier([task](double grace) { task->end(grace); });
  return stream;
}

}  // namespace hypertune::inline v0::k8s
