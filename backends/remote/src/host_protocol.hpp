// The host protocol: encodes the messages of host_messages.hpp.
#pragma once

#include "host_messages.hpp"

#include <hypertune/detail/network_text.hpp>
#include <hypertune/error.hpp>
#include <hypertune/execute/detail/frame_codec.hpp>
#include <hypertune/execute/detail/worker_protocol.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::remote {
namespace detail {

class HostWriter : public hypertune::detail::WireWriter {
 public:
  using WireWriter::put;
  using WireWriter::WireWriter;
  void put(const Host& m) {
    put(std::string_view(m.name));
    put(m.total);
    put(m.addresses);
  }
  void put(const wire::Hello& m) {
    put(std::uint64_t{m.version});
    put_signed(m.pid);
    put(std::string_view(m.machine));
    put(m.host);
    put(m.clock);
    put(m.by_content);
  }
  void put(const wire::Welcome& m) {
    put(std::uint64_t{m.version});
    put(std::string_view(m.host_name));
    put(m.heartbeat);
    put(m.heartbeat_timeout);
  }
  void put(const wire::Begin& m) {
    put(std::string_view(m.experiment));
    put(m.incarnation);
    put(m.hang_timeout);
    put(m.log_limit);
    put(std::string_view(m.program));
    put(std::string_view(m.notice_command));
    put(std::string_view(m.notice_url));
    put(m.notice_interval);
    put(m.by_content);
    put(m.inline_limit);
    put(std::string_view(m.token));
    put(m.rate_limit);
    put(m.direct);
    put(std::string_view(m.direct_network));
    put(m.direct_port);
    put(std::string_view(m.shared));
    put(std::string_view(m.shared_proof));
    put(std::string_view(m.shared_area));
  }
  void put(const std::vector<std::string>& texts) {
    put(std::uint64_t{texts.size()});
    for (const auto& each : texts) put(std::string_view(each));
  }
  void put(const wire::Heartbeat& m) { put(m.number); }
  void put(const wire::Credit& m) { put(m.bytes); }
  void put(const Notice& m) { put(std::string_view(m.text)); }
  void put(const wire::LogPiece& m) {
    identity(m);
    put(std::string_view(m.text));
  }
  void put(const wire::Usage& m) {
    put(m.cpu);
    put(m.memory);
    put(m.memory_total);
    put(std::uint64_t{m.gpus.size()});
    for (const double used : m.gpus) put(used);
    put(std::uint64_t{m.gpu_memory.size()});
    for (const std::uint64_t used : m.gpu_memory) put(used);
  }
  void put(const wire::Draining& m) {
    put(std::string_view(m.why));
    put(m.seconds);
  }
  void put(const wire::Offer& m) {
    put(m.transfer);
    put(std::uint64_t{m.attempt});
    put(m.info);
    put(std::string_view(m.parent));
    put(std::uint64_t{m.files.size()});
    for (const auto& file : m.files) {
      put(std::string_view(file.name));
      put(file.size);
    }
    put(m.by_content);
    put(m.shared);
  }
  void put(const wire::Piece& m) {
    put(m.transfer);
    put(std::string_view(m.bytes));
  }
  void put(const wire::Taken& m) {
    put(m.transfer);
    put(std::string_view(m.error));
  }
  void put(const wire::Want& m) {
    put(m.transfer);
    put_signed(m.trial);
    put(m.info);
    put(m.from_driver);
    put(m.without);
  }
  void put(const wire::Unavailable& m) {
    put(m.transfer);
    put(std::string_view(m.why));
    put(m.lost);
  }
  void put(const wire::Refusal& m) {
    put(std::string_view(m.why));
    put(m.permanent);
  }
  void put(const wire::Shutdown& m) { put(m.clean); }
  void put(const wire::Serving& m) { put(std::string_view(m.endpoint)); }
  void put(const wire::Source& m) {
    put(m.transfer);
    put(std::string_view(m.content_id));
    put(m.peers);
  }
  void put(const wire::Fetched& m) {
    put(m.transfer);
    put(m.moved);
    put(m.reused);
    put(m.direct);
    put(m.without);
  }
  void put(const wire::StreamOpen& m) { put(m.stream); }
  void put(const wire::StreamPiece& m) {
    put(m.stream);
    put(std::string_view(m.bytes));
  }
  void put(const wire::StreamEnd& m) { put(m.stream); }
  void put(const wire::Proof& m) {
    put(std::string_view(m.read));
    put(std::string_view(m.wrote));
    put(std::string_view(m.error));
  }
  void put(const wire::Share& m) { put(m.granted); }
};

/// Decodes the output of HostWriter; throws an Error for anything else.
class HostReader : public hypertune::detail::WireReader {
 public:
  using WireReader::get;
  using WireReader::WireReader;
  void get(Host& m) {
    m.name = text();
    get(m.total);
    amount(m.total.cpus);
    amount(m.total.gpus);
    for (const auto& [name, value] : m.total.custom) amount(value);
    const std::size_t addresses = count(1);
    if (addresses > wire::max_addresses) bad("a host has too many addresses");
    m.addresses.resize(addresses);
    for (auto& each : m.addresses) {
      each = text();
      if (!hypertune::detail::parse_address(each)) bad("an address of a host is not an IP address");
    }
  }
  void get(wire::Hello& m) {
    m.version = version();
    m.pid = signed_number();
    m.machine = text();
    get(m.host);
    m.clock = real();
    m.by_content = flag();
  }
  void get(wire::Welcome& m) {
    m.version = version();
    m.host_name = text();
    m.heartbeat = interval();
    m.heartbeat_timeout = interval();
  }
  void get(wire::Begin& m) {
    m.experiment = text();
    m.incarnation = number();
    m.hang_timeout = real();
    if (!(m.hang_timeout >= 0 && m.hang_timeout < longest_hang_timeout))
      bad("the hang timeout is out of range (0 to 1e9 s)");
    m.log_limit = number();
    if (m.log_limit > 0 && m.log_limit < least_log_limit)
      bad("the log limit is out of range (0, or 4096 bytes and more)");
    m.program = text();
    m.notice_command = text();
    m.notice_url = text();
    m.notice_interval = interval();
    m.by_content = flag();
    m.inline_limit = number();
    m.token = text();
    m.rate_limit = number();
    m.direct = flag();
    m.direct_network = text();
    m.direct_port = number();
    if (m.direct_port > 65535) bad("a port is out of range (0 to 65535)");
    m.shared = text();
    m.shared_proof = text();
    m.shared_area = text();
    if (!m.shared.empty() && (!is_name(m.shared_proof) || !is_name(m.shared_area)))
      bad("a shared folder has a name that is not one of a file");
  }
  void get(std::vector<std::string>& texts) {
    texts.resize(count(1));
    for (auto& each : texts) each = text();
  }
  void get(wire::Heartbeat& m) { m.number = number(); }
  void get(wire::Credit& m) { m.bytes = number(); }
  void get(Notice& m) { m.text = text(); }
  void get(wire::LogPiece& m) {
    identity(m);
    m.text = text();
  }
  void get(wire::Usage& m) {
    m.cpu = real();
    m.memory = number();
    m.memory_total = number();
    m.gpus.resize(count(8));
    for (double& used : m.gpus) used = real();
    m.gpu_memory.resize(count(1));
    for (std::uint64_t& used : m.gpu_memory) used = number();
  }
  void get(wire::Draining& m) {
    m.why = text();
    m.seconds = real();
    if (!(m.seconds >= 0 && m.seconds < 1e9)) bad("the time of a notice is out of range (0 to 1e9 s)");
  }
  void get(wire::Offer& m) {
    m.transfer = number();
    const std::uint64_t attempt = number();
    if (attempt > std::uint32_t(-1)) bad("an attempt's number is too large");
    m.attempt = static_cast<Attempt>(attempt);
    m.info = checkpoint_of_trial();
    m.parent = text();
    m.files.resize(count(2));
    for (auto& file : m.files) {
      file.name = text();
      file.size = number();
    }
    m.by_content = flag();
    m.shared = flag();
    if ((m.by_content || m.shared) && !m.files.empty()) bad("an offer by content with files");
    if (m.by_content && m.shared) bad("an offer in two ways");
  }
  void get(wire::Piece& m) {
    m.transfer = number();
    m.bytes = text();
    if (m.bytes.size() > wire::piece_size) bad("a piece of a checkpoint is too long");
  }
  void get(wire::Taken& m) {
    m.transfer = number();
    m.error = text();
  }
  void get(wire::Want& m) {
    m.transfer = number();
    m.trial = signed_number();
    m.info = checkpoint_of_trial();
    m.from_driver = flag();
    get(m.without);
  }
  void get(wire::Unavailable& m) {
    m.transfer = number();
    m.why = text();
    m.lost = flag();
  }
  void get(wire::Refusal& m) {
    m.why = text();
    m.permanent = flag();
  }
  void get(wire::Shutdown& m) { m.clean = flag(); }
  void get(wire::Serving& m) { m.endpoint = text(); }
  void get(wire::Source& m) {
    m.transfer = number();
    m.content_id = text();
    get(m.peers);
  }
  void get(wire::Fetched& m) {
    m.transfer = number();
    m.moved = number();
    m.reused = number();
    m.direct = flag();
    get(m.without);
  }
  void get(wire::StreamOpen& m) { m.stream = number(); }
  void get(wire::StreamPiece& m) {
    m.stream = number();
    m.bytes = text();
    if (m.bytes.size() > wire::piece_size) bad("a piece of a stream is too long");
  }
  void get(wire::StreamEnd& m) { m.stream = number(); }
  void get(wire::Proof& m) {
    m.read = text();
    m.wrote = text();
    m.error = text();
  }
  void get(wire::Share& m) { m.granted = flag(); }

 private:
  static bool is_name(const std::string& name) {
    return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos &&
           name.find('\0') == std::string::npos;
  }
  std::uint32_t version() {
    const std::uint64_t value = number();
    if (value > std::uint32_t(-1)) bad("a version is out of range (0 to 2^32 - 1)");
    return static_cast<std::uint32_t>(value);
  }
  double interval() {
    const double value = real();
    if (!(value > 0 && value < 1e9)) bad("an interval is out of range (above 0 and below 1e9 s)");
    return value;
  }
  static void amount(double value) {
    if (!(value >= 0 && value <= 1e9)) bad("a host's resources are out of range (0 to 1e9)");
  }
  CheckpointInfo checkpoint_of_trial() {
    CheckpointInfo info = checkpoint();
    if (info.trial < 0 || info.steps < 0) bad("a checkpoint's trial or steps are negative");
    return info;
  }
};

using HostCodec = hypertune::detail::FrameCodec<wire::Message, HostWriter, HostReader>;

}  // namespace detail

namespace wire {

/// Appends the message as a frame.
inline void append(std::string& out, const Message& message) { detail::HostCodec::append(out, message); }

/// Decodes a frame. Error of kind `protocol` if the bytes are not a message.
inline Message decode(const Frame& frame) { return detail::HostCodec::decode(frame); }

/// Error of kind `protocol` if the peer has another protocol version.
inline void require_version(std::uint32_t theirs, std::string_view peer) {
  hypertune::detail::require_same_version(theirs, version, peer, "host");
}

/// Finds the banner in the output of an agent's host; after it, everything is frames.
class BannerFilter {
 public:
  /// Returns the part of `bytes` that belongs to frames. Error of kind `protocol` after too many bytes without a
  /// banner.
  std::string_view pass(std::string_view bytes) {
    if (found_) return bytes;
    const std::size_t before = preamble_.size();
    preamble_ += bytes;
    const std::size_t at = preamble_.find(banner);
    if (at == std::string::npos) {
      if (preamble_.size() > max_preamble)
        fail(Errc::protocol, "the host prints something else than an agent does: '{}…'", preamble_.substr(0, 80));
      return {};
    }
    found_ = true;
    const std::size_t used = at + banner.size() - before;
    preamble_.resize(at);
    return bytes.substr(used);
  }
  bool found() const { return found_; }
  /// The output before the banner.
  const std::string& preamble() const { return preamble_; }

 private:
  std::string preamble_;
  bool found_ = false;
};

}  // namespace wire
}  // namespace hypertune::inline v0::remote
