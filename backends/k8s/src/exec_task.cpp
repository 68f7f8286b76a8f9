// Part of hypertune::k8s.
#include "exec_task.hpp"

#include "status.hpp"

#include <hypertune/detail/socket_pair.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>

namespace hypertune::inline v0::k8s::detail {

namespace {

/// Seconds between pings, and how long a server may be silent, while it is listened to, before it is given up.
constexpr double ping_interval = 10, longest_silence = 45;
constexpr std::size_t max_status = std::size_t{64} << 10U;

std::pair<Descriptor, Descriptor> socket_pair() {
  auto pair = hypertune::detail::make_socket_pair();
  const int size = 512 << 10;
  for (const auto* end : {&pair.first, &pair.second}) {
    ::setsockopt(end->get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    ::setsockopt(end->get(), SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  }
  return pair;
}

}  // namespace

ExecTask::ExecTask(std::shared_ptr<Client::State> engine, PodCommand what, Wanted wanted)
    : engine_(std::move(engine)),
      what_(std::move(what)),
      wanted_(wanted),
      in_(engine_->io()),
      out_(engine_->io()),
      errors_(engine_->io()),
      size_news_(engine_->io().get_executor()),
      written_(engine_->io().get_executor()),
      children_(engine_->io()) {
  if (what_.command.empty()) fail(Errc::usage, "there is no command to run in the pod '{}'", what_.pod);
  if (what_.name_space.empty()) what_.name_space = engine_->access().name_space;
  const auto make = [](Descriptor& theirs, Socket& ours) {
    auto [one, other] = socket_pair();
    theirs = std::move(one);
    ours.assign(asio::local::stream_protocol(), ::fcntl(other.get(), F_DUPFD_CLOEXEC, 0));
  };
  make(to, in_);
  make(from, out_);
  make(err, errors_);
}

ExecTask::~ExecTask() { end(0); }

std::string ExecTask::doing() const { return fmt::format("exec in {}/{}", what_.name_space, what_.pod); }

std::string ExecTask::target() const {
  Query query;
  for (const auto& word : what_.command) query.emplace_back("command", word);
  if (!what_.container.empty()) query.emplace_back("container", what_.container);
  if (wanted_.in) query.emplace_back("stdin", "true");
  query.emplace_back("stdout", "true");
  query.emplace_back(wanted_.terminal ? "tty" : "stderr", "true");  // a terminal has only one output
  return target_of(api_path({"api", "v1", "namespaces", what_.name_space, "pods", what_.pod, "exec"}), query);
}

void ExecTask::open(double seconds, const std::stop_token& stop) { engine_->wait(try_open(seconds), stop); }

asio::awaitable<bool> ExecTask::try_open(double seconds) {
  const double until = Engine::now() + seconds;
  const bool in_time = co_await engine_->turn(seconds);
  if (!in_time) throw ApiError(0, "", fmt::format("too many calls come before this one ({})", doing()));
  std::uint64_t refused = 0;
  for (;;) {
    const auto credential = co_await engine_->credential(refused);
    Dialed dialed = co_await engine_->dial(credential, until - Engine::now());
    if (!dialed.wire) throw ApiError(0, "", fmt::format("{} ({})", dialed.failure.trouble, doing()));
    wire_ = std::move(dialed.wire);
    wire_->expires_in(std::max(until - Engine::now(), 0.01));
    socket_ = std::make_unique<ChannelSocket>(wire_);
    const RequestText request = engine_->text_of("GET", target());
    const std::string protocols = "v5.channel.k8s.io, v4.channel.k8s.io";
    const auto opened = co_await socket_->open(request, credential->headers, protocols);
    if (opened.status == 401 && refused == 0) {
      refused = credential->generation;
      continue;
    }
    if (opened.status == 0) throw ApiError(0, "", fmt::format("{} ({})", opened.trouble, doing()));
    if (opened.status != 101) throw api_error(opened.status, opened.body, doing(), engine_->access().origin);
    half_close_ = opened.protocol == "v5.channel.k8s.io";
    if (!half_close_ && opened.protocol != "v4.channel.k8s.io")
      fail(Errc::protocol, "the API server speaks '{}' for exec, not v5.channel.k8s.io or v4: is it older than 1.14?",
           one_line(opened.protocol, 60));
    if (!half_close_ && wanted_.must_end_input)
      fail(Errc::protocol,
           "the API server does not speak v5.channel.k8s.io, so that the end of a command's input cannot be told: use "
           "Kubernetes 1.30 or later");
    wire_->expires_never();
    co_return true;
  }
}

void ExecTask::start() {
  started_ = true;
  task_ = engine_->spawn(pump());
}

void ExecTask::end(double grace) noexcept {
  if (!std::exchange(started_, false)) return;
  if (grace <= 0 || !task_.over_within(grace)) task_.cancel(engine_->io());
  task_.join();
}

asio::awaitable<void> ExecTask::pump() {
  if (wanted_.in) children_.spawn(send());
  if (wanted_.terminal) children_.spawn(tell_size());
  children_.spawn(keep_alive());
  try {
    co_await receive();
  } catch (const boost::system::system_error&) { trouble_ = "it was left"; }
  wire_->close();
  error_code ignored;
  in_.close(ignored);  // NOLINT(bugprone-unused-return-value)
  co_await uncancellable();
  co_await children_.join();
  if (!status_.empty()) {
    end_ = read_command_end(status_);
  } else {
    end_.message = trouble_.empty() ? "the connection was closed without a word" : trouble_;
  }
  if (wanted_.explain) explain();
  out_.close(ignored);     // NOLINT(bugprone-unused-return-value)
  errors_.close(ignored);  // NOLINT(bugprone-unused-return-value)
}

void ExecTask::explain() {
  if (end_.exited && end_.code == 0) return;
  const std::string line = end_.exited  ? fmt::format("the command ended with exit code {}\n", end_.code)
                           : end_.known ? fmt::format("{}{}\n", not_run, end_.message)
                                        : fmt::format("the connection to the pod is lost: {}\n", end_.message);
  // Nobody may be reading this, so do not wait.
  ::send(errors_.native_handle(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

asio::awaitable<void> ExecTask::receive() {
  const auto memory = std::make_unique_for_overwrite<char[]>(piece);
  bool errors_wanted = true;
  for (;;) {
    const auto into = asio::buffer(memory.get(), piece);
    const auto read = co_await socket_->read(into);
    if (read.over) {
      if (trouble_.empty()) trouble_ = read.trouble;
      co_return;
    }
    moved_.fetch_add(read.bytes.size(), std::memory_order_relaxed);
    error_code error;
    if (read.channel == channel::out || (read.channel == channel::err && errors_wanted)) {
      delivering_ = true;
      Socket& there = read.channel == channel::out ? out_ : errors_;
      co_await asio::async_write(there, asio::buffer(read.bytes), asio::redirect_error(asio::use_awaitable, error));
      delivering_ = false;
      if (error == asio::error::operation_aborted) throw_cancelled();
      if (error && read.channel == channel::out) {
        if (trouble_.empty()) trouble_ = "nobody reads what it says";
        co_return;
      }
      if (error) errors_wanted = false;
    } else if (read.channel == channel::status && status_.size() + read.bytes.size() <= max_status) {
      status_ += read.bytes;
    }
  }
}

asio::awaitable<void> ExecTask::send() {
  const auto memory = std::make_unique_for_overwrite<char[]>(piece + 1);
  memory[0] = static_cast<char>(channel::in);
  for (;;) {
    error_code error;
    const auto into = asio::buffer(memory.get() + 1, piece);
    const std::size_t size = co_await in_.async_read_some(into, asio::redirect_error(asio::use_awaitable, error));
    if (error) break;
    const asio::const_buffer message(memory.get(), size + 1);
    const std::string trouble = co_await write(message);
    if (!trouble.empty()) co_return;  // receive() reports it
    moved_.fetch_add(size, std::memory_order_relaxed);
  }
  if (!half_close_) {
    if (trouble_.empty()) trouble_ = "its input was closed here";
    wire_->close();
    co_return;
  }
  const std::array<std::uint8_t, 2> over{channel::close, channel::in};
  const asio::const_buffer message(over.data(), over.size());
  co_await write(message);
}

// Sends one message at a time; two coroutines send.
asio::awaitable<std::string> ExecTask::write(asio::const_buffer message) {
  while (writing_) co_await written_.wait();
  writing_ = true;
  std::string trouble = co_await socket_->write(message);
  writing_ = false;
  written_.raise();
  co_return trouble;
}

asio::awaitable<void> ExecTask::tell_size() {
  for (;;) {
    co_await size_news_.wait();
    const std::string message = std::exchange(size_, {});
    if (message.empty()) continue;
    const asio::const_buffer bytes(message.data(), message.size());
    const std::string trouble = co_await write(bytes);
    if (!trouble.empty()) co_return;
  }
}

void ExecTask::resize(unsigned columns, unsigned rows) {
  std::string message = fmt::format(R"({{"Width":{},"Height":{}}})", columns, rows);
  message.insert(message.begin(), static_cast<char>(channel::size));
  asio::post(engine_->io(), [self = weak_from_this(), message = std::move(message)]() mutable {
    const auto task = self.lock();
    if (!task) return;
    task->size_ = std::move(message);
    task->size_news_.raise();
  });
}

asio::awaitable<void> ExecTask::keep_alive() {
  for (;;) {
    co_await sleep_for(engine_->io(), ping_interval);
    if (!delivering_ && Engine::now() - socket_->heard_at() > longest_silence) {
      trouble_ = fmt::format("nothing was heard for {:g} s", longest_silence);
      wire_->close();
      co_return;
    }
    if (!delivering_) co_await socket_->ping();
  }
}

}  // namespace hypertune::inline v0::k8s::detail
