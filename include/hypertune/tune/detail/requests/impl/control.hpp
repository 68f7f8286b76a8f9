// The pipe between a driver and the processes that send it requests.
#pragma once

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/no_sigpipe.hpp>
#include <hypertune/detail/signal_block.hpp>
#include <hypertune/error.hpp>
#include <hypertune/process/process_tree.hpp>
#include <hypertune/record/detail/journal_lock.hpp>
#include <hypertune/record/journal_schema.hpp>
#include <hypertune/trial/detail/value_codec.hpp>
#include <hypertune/tune/detail/requests/control.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

namespace hypertune::inline v0 {

namespace detail {

inline constexpr std::uint64_t control_version = 1;
inline constexpr std::string_view answer_prefix = ".answer-";

/// A message: its length in two bytes (little-endian), then the body.
inline std::string framed(std::string_view body) {
  std::string message;
  message += static_cast<char>(body.size() & 0xFFU);
  message += static_cast<char>(body.size() >> 8U);
  message += body;
  return message;
}

std::string encode_request(const ControlRequest& request, std::string_view answer_to) {
  std::string body;
  ValueWriter out(body);
  out.put(control_version);
  out.put(answer_to);
  out.put(static_cast<std::uint64_t>(request.kind));
  out.put(std::uint64_t{request.trials.size()});
  for (const TrialId trial : request.trials) out.put_signed(trial);
  out.put(Point{}, request.params);
  return std::string(control_mark) + framed(body);
}

std::pair<std::string, ControlRequest> decode_request(std::string_view body) {
  ValueReader in(body);
  if (in.number() != control_version) fail(Errc::corrupt, "another version");
  std::string answer_to = in.text();
  ControlRequest request;
  const std::uint64_t kind = in.number();
  if (kind > static_cast<std::uint64_t>(ControlRequest::Kind::resize)) fail(Errc::corrupt, "no such request");
  request.kind = static_cast<ControlRequest::Kind>(kind);
  request.trials.resize(in.count(1));
  for (TrialId& trial : request.trials) trial = in.signed_number();
  request.params = in.configuration().second;
  in.end();
  return {std::move(answer_to), std::move(request)};
}

/// Whether this is a name that ask_driver() makes: the prefix and numbers, so that it cannot lead out of the folder.
inline bool is_answer_name(std::string_view name) {
  if (!name.starts_with(answer_prefix) || name.size() > answer_prefix.size() + 40) return false;
  name.remove_prefix(answer_prefix.size());
  return !name.empty() && name.find_first_not_of("0123456789-") == std::string_view::npos;
}

/// Whether this is a pipe that belongs to this user.
inline bool is_own_pipe(int fd) {
  struct stat info{};
  return ::fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode) && info.st_uid == ::geteuid();
}

/// Writes the whole message at once. A pipe without a reader is an error and raises no signal.
inline bool write_pipe(int fd, std::string_view message) {
  ssize_t written = 0;
  int error = 0;
  {
    const NoSigpipe no_signal;
    written = ::write(fd, message.data(), message.size());
    error = errno;
  }
  errno = error;
  return written == static_cast<ssize_t>(message.size());
}

inline constexpr const char* control_name = "control";

/// Removes answer pipes that were left by killed processes. If the process id is in use again, the pipe is kept until
/// that process has ended.
inline void remove_left_answers(int folder) {
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return;
  DIR* entries = ::fdopendir(copy);
  if (entries == nullptr) {
    ::close(copy);
    return;
  }
  while (const dirent* entry = ::readdir(entries)) {
    const std::string_view name = entry->d_name;
    struct stat there{};
    pid_t pid = 0;
    if (!is_answer_name(name)) continue;
    const std::string_view number = name.substr(answer_prefix.size());
    if (std::from_chars(number.data(), number.data() + number.size(), pid).ec != std::errc() || pid <= 0) continue;
    if (::kill(pid, 0) == 0 || errno != ESRCH) continue;
    if (::fstatat(folder, entry->d_name, &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISFIFO(there.st_mode))
      ::unlinkat(folder, entry->d_name, 0);
  }
  ::closedir(entries);
}

}  // namespace detail

class ControlPipe::State {
 public:
  State(const std::filesystem::path& directory, Handler handler)
      : folder_(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), handler_(std::move(handler)) {
    struct stat there{};
    if (!folder_) return;
    detail::remove_left_answers(folder_.get());
    if (::fstatat(folder_.get(), detail::control_name, &there, AT_SYMLINK_NOFOLLOW) == 0) {
      if (!S_ISFIFO(there.st_mode)) return;  // some other file
      ::unlinkat(folder_.get(), detail::control_name,
                 0);  // left by a driver that was killed, as this process holds the lock
    }
    if (::mkfifoat(folder_.get(), detail::control_name, 0600) != 0) return;
    // Opened for writing as well, so that there is no end of file when the last writer closes it.
    fd_ = detail::open_at(folder_.get(), detail::control_name, O_RDWR | O_NONBLOCK | O_NOFOLLOW);
    closing_ = detail::Descriptor(::eventfd(0, EFD_CLOEXEC));
    if (!fd_ || !closing_ || !detail::is_own_pipe(fd_.get())) return;
    alone_.emplace(fd_.get());
    const detail::SignalBlock block;
    try {
      thread_ = std::thread([this] { serve(); });
    } catch (const std::system_error&) {  // no thread available: no requests are served
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (thread_.joinable()) {
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto written = ::write(closing_.get(), &one, sizeof one);
      thread_.join();
    }
    if (fd_) ::unlinkat(folder_.get(), detail::control_name, 0);
    if (folder_) detail::remove_left_answers(folder_.get());
  }

 private:
  void serve() {
    for (;;) {
      std::array<pollfd, 2> fds{pollfd{closing_.get(), POLLIN, 0}, pollfd{fd_.get(), POLLIN, 0}};
      if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
      if (fds[0].revents != 0) return;
      if ((fds[1].revents & POLLIN) != 0) take();
    }
  }

  // Reads everything that is in the pipe. Messages are written atomically, so each is there as a whole. Anything else
  // is skipped up to the next mark.
  void take() {
    std::string bytes(65536, '\0');
    const auto size = ::read(fd_.get(), bytes.data(), bytes.size());
    if (size <= 0) return;
    std::string_view rest(bytes.data(), static_cast<std::size_t>(size));
    for (auto mark = rest.find(detail::control_mark); mark != std::string_view::npos;
         mark = rest.find(detail::control_mark)) {
      rest.remove_prefix(mark + detail::control_mark.size());
      if (rest.size() < 2) return;
      const std::size_t length =
          static_cast<unsigned char>(rest[0]) | (std::size_t{static_cast<unsigned char>(rest[1])} << 8U);
      if (length + 2 > rest.size()) continue;
      answer(rest.substr(2, length));
      rest.remove_prefix(length + 2);  // its contents are not searched for further requests
    }
  }

  void answer(std::string_view body) {
    std::string to;
    ControlAnswer answer;
    try {
      ControlRequest request;
      std::tie(to, request) = detail::decode_request(body);
      if (!detail::is_answer_name(to)) return;
      answer = handler_(request);
    } catch (const Error& error) {
      if (error.code() == Errc::corrupt) return;
      answer = {false, error.what()};
    } catch (const std::exception& error) { answer = {false, error.what()}; }
    const auto pipe = detail::open_at(folder_.get(), to.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW);
    if (!pipe || !detail::is_own_pipe(pipe.get())) return;  // not there: the asking process has gone
    std::string text;
    detail::ValueWriter out(text);
    out.put(answer.done);
    constexpr std::size_t room = PIPE_BUF - 64;
    out.put(std::string_view(answer.text).substr(0, room));
    detail::write_pipe(pipe.get(), detail::framed(text));
  }

  detail::Descriptor folder_;  // a descriptor, so that it stays valid if the folder is moved
  Handler handler_;
  detail::Descriptor fd_, closing_;
  std::optional<detail::NotInherited> alone_;
  std::thread thread_;
};

ControlPipe::ControlPipe(const std::filesystem::path& directory, Handler handler)
    : state_(std::make_unique<State>(directory, std::move(handler))) {}
ControlPipe::~ControlPipe() = default;

std::string how_to_wake(const DriverInfo& driver) {
  if (driver.pid <= 0 || driver.host != detail::host_name()) return {};
  const auto state = process::stat_field(static_cast<pid_t>(driver.pid), 3);
  return state == "T" || state == "t" ? detail::format("kill -CONT {}", driver.pid) : "";
}

ControlAnswer ask_driver(const std::filesystem::path& directory, const ControlRequest& request,
                         const AskPatience& patience) {
  if (!has_journal(directory)) fail(Errc::usage, "there is no experiment in '{}'", directory.string());
  const auto driver = driver_of(directory);
  if (!driver)
    fail(Errc::usage, "nobody runs the experiment in '{}' now: there is nobody to ask; go on with it by --resume",
         directory.string());
  const detail::Descriptor out{
      ::open((directory / detail::control_name).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)};
  if (!out || !detail::is_own_pipe(out.get())) {
    if (!out && errno == EACCES)
      fail(Errc::usage, "the experiment in '{}' is another user's: that one alone may ask its driver",
           directory.string());
    fail(Errc::usage,
         "the driver of '{}' ({}) does not listen here: it runs on another host, is just beginning or ending, or "
         "simulates",
         directory.string(), detail::text_of(*driver));
  }
  const auto stamp = std::chrono::steady_clock::now().time_since_epoch().count();
  const std::string name = detail::format("{}{}-{}", detail::answer_prefix, ::getpid(), stamp);
  const std::string message = detail::encode_request(request, name);
  if (message.size() > PIPE_BUF)
    fail(Errc::usage,
         "{} bytes are too many for one request ({} at most): name fewer trials at a time, or give shorter texts",
         message.size(), PIPE_BUF);
  struct Removed {
    std::filesystem::path path;
    ~Removed() { ::unlink(path.c_str()); }
  };
  const Removed answer_path{directory / name};
  if (::mkfifo(answer_path.path.c_str(), 0600) != 0)
    fail(Errc::io, "cannot make '{}': {}", answer_path.path.string(), std::strerror(errno));
  const detail::Descriptor in{::open(answer_path.path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)};
  if (!in) fail(Errc::io, "cannot open '{}': {}", answer_path.path.string(), std::strerror(errno));
  if (!detail::write_pipe(out.get(), message))
    fail(Errc::io, "cannot ask the driver of '{}': {}", directory.string(), std::strerror(errno));
  const auto begin = std::chrono::steady_clock::now();
  const auto end = begin + std::chrono::duration<double>(patience.seconds);
  bool told = false;
  for (;;) {
    const auto now = std::chrono::steady_clock::now();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - now).count();
    if (!told && now - begin >= std::chrono::duration<double>(patience.notice_after)) {
      told = true;
      if (const auto wake = how_to_wake(*driver); !wake.empty())
        fail(Errc::busy, "the driver of '{}' ({}) is stopped: what was asked is done once it goes on ({})",
             directory.string(), detail::text_of(*driver), wake);
      if (patience.notice && left > 0)
        patience.notice(detail::format(
            "the driver of '{}' ({}) has not answered yet; what was asked stays, and this waits for it up to {} s",
            directory.string(), detail::text_of(*driver), patience.seconds));
    }
    pollfd fd{in.get(), POLLIN, 0};
    // A driver that dies does not close this pipe: check every second that it still runs.
    const int ready = ::poll(&fd, 1, static_cast<int>(std::clamp<long long>(left, 0, 1000)));
    if (ready > 0) break;
    if (ready < 0 && errno != EINTR) fail(Errc::io, "cannot wait for the driver's answer: {}", std::strerror(errno));
    if (!driver_of(directory)) fail(Errc::usage, "the driver of '{}' has just ended", directory.string());
    if (left <= 0)
      fail(Errc::busy, "the driver of '{}' ({}) has not answered within {} s; what was asked may still be done",
           directory.string(), detail::text_of(*driver), patience.seconds);
  }
  std::array<char, PIPE_BUF> bytes{};
  const auto size = ::read(in.get(), bytes.data(), bytes.size());
  try {
    if (size < 2) fail(Errc::corrupt, "it is too short");
    detail::ValueReader decoder(std::string_view(bytes.data() + 2, static_cast<std::size_t>(size) - 2));
    ControlAnswer answer;
    answer.done = decoder.flag();
    answer.text = decoder.text();
    decoder.end();
    return answer;
  } catch (const Error& error) { fail(Errc::io, "the driver's answer cannot be read: {}", error.what()); }
}

WhyAnswer ask_why(const std::filesystem::path& directory, std::vector<TrialId> trials, double seconds) {
  WhyAnswer answer;
  std::string text;
  try {
    text = ask_driver(directory, {.kind = ControlRequest::Kind::why, .trials = std::move(trials)},
                      {.seconds = seconds, .notice_after = seconds})
               .text;
  } catch (const Error&) { return answer; }
  answer.paused = text.starts_with(experiment_paused_text);
  constexpr std::string_view head = "trial ";
  for (std::string_view rest = text; !rest.empty();) {
    const auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.starts_with(nothing_runs)) answer.nothing_runs = line;
    const auto colon = line.find(": ");
    if (!line.starts_with(head) || colon == std::string_view::npos) continue;
    TrialId trial = 0;
    const auto [end, error] = std::from_chars(line.data() + head.size(), line.data() + colon, trial);
    if (error == std::errc() && end == line.data() + colon) answer.reasons.emplace(trial, line.substr(colon + 2));
  }
  return answer;
}

}  // namespace hypertune::inline v0
