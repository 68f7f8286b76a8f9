// The worker protocol: the messages between a driver and a worker process, independent of the transport.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/execute/detail/frame_codec.hpp>
#include <hypertune/execute/executor.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

/// One worker runs one attempt at a time:
///
///     worker                                driver
///     Hello (version)                  ->
///                                      <-   Welcome (version, the experiment's folder)
///                                      <-   Launch
///     Started | Failed                 ->
///     Reported                         ->                      (the worker waits)
///                                      <-   Continue | Pause | Stop
///     Checkpointed, SaveFailed, LogLine, Alive  ->             (between, at any time)
///     GroupMessage                     <->  GroupMessage       (of one of several workers, at any time)
///     Paused | Finished | Stopped | Failed  ->                 (ready for the next Launch, or parked)
///                                      <-   Shutdown
///
/// The worker exits when the stream closes. Doubles are sent bit by bit.
namespace wire {

/// Must be raised whenever a message changes. Driver and worker must have the same version.
inline constexpr std::uint32_t version = 10;

struct Hello {
  std::uint32_t version = wire::version;
  std::int64_t pid = 0;
};
struct Welcome {
  std::uint32_t version = wire::version;
  std::string directory = {};                   ///< the experiment's folder
  Seconds heartbeat = 0;                        ///< seconds between Alive messages while a step runs; 0: none
  std::string checkpoints = {};                 ///< ExecutorStart::checkpoints
  std::vector<std::string> origins = {};        ///< ExecutorStart::origins
  std::uint64_t log_limit = default_log_limit;  ///< ExecutorStart::log_limit
};
/// Exit, once no attempt is running.
struct Shutdown {};
/// A line for the user.
struct LogLine {
  std::string text;
};
/// A sign of life. `beats` counts the calls of Context::alive().
struct Alive {
  std::uint64_t beats = 0;
};

/// The index of a message in this list, from 1, is its type on the wire: only append to the list.
using Message =
    std::variant<Hello, Welcome, Launch, Continue, Pause, Stop, Shutdown, Started, Reported, Checkpointed,
                 CheckpointLost, Paused, Finished, Stopped, Failed, LogLine, Alive, SaveFailed, GroupMessage>;

inline constexpr auto message_types = static_cast<std::uint8_t>(std::variant_size_v<Message>);

}  // namespace wire

namespace detail {

class WireWriter : public PayloadWriter {
 public:
  using PayloadWriter::PayloadWriter;
  using PayloadWriter::put;
  template <class T>
    requires requires(const T& m) { m.trial, m.attempt; }
  void identity(const T& m) {
    put_signed(m.trial);
    put(std::uint64_t{m.attempt});
    if constexpr (requires { m.member; }) put_signed(m.member);
  }
  void put(const wire::Hello& m) {
    put(std::string_view("hypertune"));
    put(std::uint64_t{m.version});
    put_signed(m.pid);
  }
  void put(const wire::Welcome& m) {
    put(std::uint64_t{m.version});
    put(std::string_view(m.directory));
    put(m.heartbeat);
    put(std::string_view(m.checkpoints));
    put(std::uint64_t{m.origins.size()});
    for (const auto& origin : m.origins) put(std::string_view(origin));
    put(m.log_limit);
  }
  void put(const Resources& r) {
    put(r.cpus);
    put(r.gpus);
    put(r.memory);
    put(std::uint64_t{r.custom.size()});
    for (const auto& [name, amount] : r.custom) {
      put(std::string_view(name));
      put(amount);
    }
  }
  void put(const Slot& s) {
    put_signed(s.host);
    put(std::string_view(s.host_name));
    put(s.cpus);
    put(s.gpus);
    put(s.resources);
  }
  void put(const Launch& m) {
    identity(m);
    put(m.point, m.params);
    put(std::uint64_t{m.restore.size()});
    for (const auto& candidate : m.restore) put(candidate);
    put(m.allocation.lead);
    put(m.seed);
    put(m.parked);
    put_signed(m.next_step);
    put(m.must_restore);
    put(m.seat.has_value());
    if (!m.seat) return;
    put_signed(m.seat->member);
    put(m.seat->place);
  }
  void put(const GroupPlace& place) {
    put(std::uint64_t{place.generation});
    put_signed(place.rank);
    put(std::uint64_t{place.hosts.size()});
    for (const auto& host : place.hosts) put(std::string_view(host));
    put(std::string_view(place.network));
    put(place.cpus);
  }
  void put(const GroupMessage& m) {
    identity(m);
    put(static_cast<std::uint64_t>(m.kind));
    put(std::uint64_t{m.generation});
    put(m.place);
    put(std::string_view(m.key));
    put(std::string_view(m.value));
    put(std::uint64_t{m.ranks.size()});
    for (const int rank : m.ranks) put_signed(rank);
  }
  void put(const Continue& m) {
    identity(m);
    put(m.save);
  }
  void put(const Pause& m) {
    identity(m);
    put(m.save);
    put(m.keep);
  }
  void put(const Stop& m) {
    identity(m);
    put(m.save);
  }
  void put(const wire::Shutdown&) {}
  void put(const Started& m) {
    identity(m);
    put_signed(m.next_step);
  }
  void put(const Reported& m) {
    identity(m);
    put(std::uint64_t{m.report.metrics.size()});
    for (const auto& [name, value] : m.report.metrics) {
      put(std::string_view(name));
      put(value);
    }
    put(m.report.step.has_value());
    if (m.report.step) put_signed(*m.report.step);
    put(m.report.attributes);
    put(m.report.over);
    put(std::string_view(m.report.remark));
    put(std::uint64_t{m.report.units.size()});
    for (const auto& [metric, unit] : m.report.units) {
      put(std::string_view(metric));
      put(std::string_view(unit));
    }
    put(m.checkpoint.has_value());
    if (m.checkpoint) put(*m.checkpoint);
    put(m.fixed);
    put_signed(m.workers);
  }
  void put(const Checkpointed& m) {
    identity(m);
    put(m.checkpoint);
  }
  void put(const CheckpointLost& m) {
    put_signed(m.trial);
    put(m.checkpoint);
    put(std::string_view(m.why));
  }
  void put(const SaveFailed& m) {
    put_signed(m.trial);
    put_signed(m.steps);
    put(std::string_view(m.why));
  }
  void put(const Paused& m) {
    identity(m);
    put(m.parked);
  }
  void put(const Finished& m) { identity(m); }
  void put(const Stopped& m) { identity(m); }
  void put(const Failed& m) {
    identity(m);
    put(m.cause);
  }
  void put(const wire::LogLine& m) { put(std::string_view(m.text)); }
  void put(const wire::Alive& m) { put(m.beats); }
};

/// Reads what WireWriter wrote; throws an Error at anything else.
class WireReader : public PayloadReader {
 public:
  using PayloadReader::PayloadReader;

  template <class T>
  void identity(T& m) {
    m.trial = signed_number();
    m.attempt = small<Attempt>();
    if (m.trial < 0) bad("a trial's number is negative");
    if constexpr (requires { m.member; }) m.member = member();
  }
  void get(wire::Hello& m) {
    if (text() != "hypertune") bad("the peer is not a hypertune worker");
    m.version = small<std::uint32_t>();
    m.pid = signed_number();
  }
  void get(wire::Welcome& m) {
    m.version = small<std::uint32_t>();
    m.directory = text();
    m.heartbeat = real();
    if (!(m.heartbeat >= 0 && m.heartbeat < 1e9)) bad("the interval of heartbeats is out of range (0 to 1e9 s)");
    m.checkpoints = text();
    m.origins.resize(count(1));
    for (auto& origin : m.origins) origin = text();
    m.log_limit = number();
    if (m.log_limit > 0 && m.log_limit < least_log_limit)
      bad("the log limit is out of range (0, or 4096 bytes and more)");
  }
  void get(Resources& r) {
    r.cpus = real();
    r.gpus = real();
    r.memory = number();
    r.custom.clear();
    for (std::size_t left = count(9); left > 0; --left) {
      std::string name = text();
      r.custom[std::move(name)] = real();
    }
  }
  void get(Slot& s) {
    s.host = small_number();
    s.host_name = text();
    s.cpus = small_numbers();
    s.gpus = small_numbers();
    get(s.resources);
  }
  void get(Launch& m) {
    identity(m);
    std::tie(m.point, m.params) = configuration();
    m.restore.clear();
    for (std::size_t left = count(5); left > 0; --left) m.restore.push_back(checkpoint());
    get(m.allocation.lead);
    m.seed = number();
    m.parked = flag();
    m.next_step = small_number();
    m.must_restore = flag();
    m.seat.reset();
    if (!flag()) return;
    Seat seat;
    seat.member = member();
    get(seat.place);
    if (seat.place.rank < 0) bad("a worker begins without a rank");
    m.seat = std::move(seat);
  }
  void get(GroupPlace& place) {
    place.generation = small<std::uint32_t>();
    place.rank = small_number();
    place.hosts.resize(count(1));
    for (auto& host : place.hosts) host = text();
    place.network = text();
    place.cpus = small_numbers();
    if (place.rank < -1 || place.rank >= place.size()) bad("a rank is not within its group");
  }
  void get(GroupMessage& m) {
    identity(m);
    const std::uint64_t kind = number();
    if (kind > static_cast<std::uint64_t>(GroupMessage::last_kind)) bad("a message of a group is of no known kind");
    m.kind = static_cast<GroupMessage::Kind>(kind);
    m.generation = small<std::uint32_t>();
    get(m.place);
    m.key = text();
    m.value = text();
    m.ranks.resize(count(1));
    for (int& rank : m.ranks) rank = small_number();
  }
  void get(Continue& m) {
    identity(m);
    m.save = flag();
  }
  void get(Pause& m) {
    identity(m);
    m.save = flag();
    m.keep = flag();
  }
  void get(Stop& m) {
    identity(m);
    m.save = flag();
  }
  void get(wire::Shutdown&) {}
  void get(Started& m) {
    identity(m);
    m.next_step = step();
  }
  void get(Reported& m) {
    identity(m);
    m.report.metrics.resize(count(9));
    for (auto& [name, value] : m.report.metrics) {
      name = text();
      value = real();
    }
    if (flag()) m.report.step = step();
    m.report.attributes = params();
    m.report.over = flag();
    m.report.remark = text();
    m.report.units.resize(count(2));
    for (auto& [metric, unit] : m.report.units) {
      metric = text();
      unit = text();
    }
    if (flag()) m.checkpoint = checkpoint();
    m.fixed = flag();
    m.workers = small_number();
    if (m.workers < -1) bad("a number of workers is negative");
  }
  void get(Checkpointed& m) {
    identity(m);
    m.checkpoint = checkpoint();
  }
  void get(CheckpointLost& m) {
    m.trial = signed_number();
    m.checkpoint = checkpoint();
    m.why = text();
  }
  void get(SaveFailed& m) {
    m.trial = signed_number();
    m.steps = step();
    m.why = text();
  }
  void get(Paused& m) {
    identity(m);
    m.parked = flag();
  }
  void get(Finished& m) { identity(m); }
  void get(Stopped& m) { identity(m); }
  void get(Failed& m) {
    identity(m);
    m.cause = cause();
  }
  void get(wire::LogLine& m) { m.text = text(); }
  void get(wire::Alive& m) { m.beats = number(); }

 protected:
  [[noreturn]] static void bad(const char* what) { fail(Errc::corrupt, "{}", what); }

 private:
  template <class T>
  T small() {
    const std::uint64_t value = number();
    if (value > std::numeric_limits<T>::max()) bad("a number is too large");
    return static_cast<T>(value);
  }
  int member() {
    const int value = small_number();
    if (value < 0) bad("a worker's number is negative");
    return value;
  }
  int step() {
    const int value = small_number();
    if (value < 0 || value == std::numeric_limits<int>::max()) bad("a step's number is out of range (0 to 2^31 - 2)");
    return value;
  }
};

using WireCodec = FrameCodec<wire::Message, WireWriter, WireReader>;

}  // namespace detail

namespace wire {

/// Appends the message as a frame.
inline void append(std::string& out, const Message& message) { detail::WireCodec::append(out, message); }

inline std::string encode(const Message& message) {
  std::string out;
  append(out, message);
  return out;
}

/// Decodes the message of a frame. Throws an Error of kind `protocol` if the bytes are no message.
inline Message decode(const Frame& frame) { return detail::WireCodec::decode(frame); }

/// Throws an Error of kind `protocol` if the peer speaks another version.
inline void require_version(std::uint32_t theirs, std::string_view peer) {
  detail::require_same_version(theirs, version, peer, "worker");
}

}  // namespace wire
}  // namespace hypertune::inline v0
