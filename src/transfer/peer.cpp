// Peer: the client's side of a connection to a CheckpointServer.
#include "peer.hpp"

#include "sockets.hpp"

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/text.hpp>

#include <boost/asio/error.hpp>
#include <boost/beast/http.hpp>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace hypertune::inline v0::detail {

namespace {

namespace http = boost::beast::http;
using Clock = Wire::Clock;

constexpr std::size_t max_answer_header = 8192;

SSL_CTX* tls() {
  static const net::SslContext context = net::pinned_client_tls();
  return context.get();
}

}  // namespace

Peer::Peer(const Endpoint& where, const PeerLimits& limits, int cancel)
    : name_(where.to_string()),
      host_("hypertune"),
      token_(where.token),
      limits_(limits),
      buffer_(max_answer_header + 8192) {
  const auto deadline = std::min(Clock::now() + limits.connect, limits.deadline);
  Descriptor socket;
  try {
    socket = connect_to(where, deadline, cancel);
  } catch (const Error& e) {
    if (e.code() != Errc::io) throw;
    throw ConnectionLost(e.what());
  }
  if (const auto* tcp = std::get_if<Tcp>(&where.address)) host_ = tcp->address;
  if (host_.find(':') != std::string::npos) host_ = "[" + host_ + "]";
  wire_ = Wire(std::move(socket), cancel);
  if (where.certificate.empty()) return;
  wire_.set_deadline(deadline);
  Wire::ErrorCode error;
  try {
    wire_.start_tls(tls(), false, where.certificate, error);
  } catch (const Error& e) { fail(e.code(), "{}: {}", name_, e.what()); }
  if (error) lost(error);
}

void Peer::lost(const Wire::ErrorCode& error) {
  namespace names = boost::asio::error;
  if (error == names::operation_aborted) throw ConnectionLost(name_ + ": stopped");
  if (error == names::timed_out) throw ConnectionLost(name_ + ": it has not answered in time");
  if (error == names::eof || error == http::error::end_of_stream || error == http::error::partial_message)
    throw ConnectionLost(name_ + ": it has closed the connection");
  throw ConnectionLost(name_ + ": " + error.message());
}

void Peer::send(const Target& target, const ByteRange* range, bool zstd) {
  // Not with Beast: this request needs no escaping.
  std::string text = "GET " + to_string(target) + " HTTP/1.1\r\nHost: " + host_ + "\r\n";
  if (!token_.empty()) text += "Authorization: Bearer " + token_.reveal() + "\r\n";
  if (range != nullptr) text += detail::format("Range: bytes={}-{}\r\n", range->begin, range->end - 1);
  if (zstd) text += "Accept-Encoding: zstd\r\n";
  text += "\r\n";
  wire_.set_stall(limits_.stall, limits_.deadline);
  Wire::ErrorCode error;
  wire_.send_all(text.data(), text.size(), false, error);
  std::fill(text.begin(), text.end(), '\0');
  if (error) lost(error);
}

Peer::Head Peer::receive_head(std::uint64_t most) {
  wire_.set_stall(limits_.stall, limits_.deadline);
  http::response_parser<http::buffer_body> parser;
  parser.header_limit(max_answer_header);
  parser.body_limit(boost::none);
  Wire::ErrorCode error;
  http::read_header(wire_, buffer_, parser, error);
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    fail(Errc::protocol, "{}: its answer's header has no end", name_);
  if (error && error != http::error::end_of_stream && error != http::error::partial_message &&
      error.category() == http::make_error_code(http::error::bad_method).category())
    fail(Errc::protocol, "{}: its answer is no HTTP ({})", name_, error.message());
  if (error) lost(error);
  const auto& message = parser.get();
  Head head{.status = message.result_int(), .length = 0, .zstd = false, .range = {}};
  const auto length = parser.content_length();
  if (parser.chunked() || !length) fail(Errc::protocol, "{}: its answer does not say how long it is", name_);
  head.length = *length;
  if (head.length > most)
    fail(Errc::protocol, "{}: its answer has {} bytes, but {} are the most that there can be", name_, head.length,
         most);
  const auto encoding = message[http::field::content_encoding];
  head.zstd = encoding == "zstd";
  if (!encoding.empty() && !head.zstd) fail(Errc::protocol, "{}: its answer is encoded in an unknown way", name_);
  const auto range = message[http::field::content_range];
  head.range = std::string(range.data(), range.size());
  return head;
}

std::size_t Peer::receive(char* data, std::size_t size) {
  if (buffer_.size() > 0) {
    const std::size_t n = std::min(size, buffer_.size());
    std::memcpy(data, buffer_.data().data(), n);
    buffer_.consume(n);
    return n;
  }
  Wire::ErrorCode error;
  const std::size_t n = wire_.receive(data, size, error);
  if (error) lost(error);
  received_ += n;
  return n;
}

std::string Peer::receive_text(const Head& head) {
  std::string text;
  char block[16384];
  while (text.size() < head.length) {  // grows with the received data, so that a wrong length costs nothing
    const std::size_t n =
        receive(block, static_cast<std::size_t>(std::min<std::uint64_t>(sizeof block, head.length - text.size())));
    text.append(block, n);
  }
  return text;
}

void Peer::refuse(const Head& head) {
  const std::string said = head.length <= 4096 ? ascii_line(receive_text(head)) : std::string();
  if (head.status == 401) fail(Errc::usage, "{}: {}", name_, said);
  if (head.status == 404 || head.status == 410) fail(Errc::corrupt, "{}: {}", name_, said);
  if (head.status >= 500) throw ConnectionLost(detail::format("{}: {} ({})", name_, said, head.status));
  fail(Errc::protocol, "{}: an answer of status {} is none here ({})", name_, head.status, said);
}

std::pair<unsigned, std::string> Peer::fetch(const Target& target, std::uint64_t most) {
  ask(target);
  const Head head = receive_head(std::max<std::uint64_t>(most, 4096));
  if ((head.status != 200 && head.status != 202) || head.zstd) refuse(head);
  if (head.length > most) fail(Errc::protocol, "{}: its answer is longer than it can be", name_);
  return {head.status, receive_text(head)};
}

double Peer::rate() const {
  const double seconds = std::chrono::duration<double>(wire_.waited()).count();
  return received_ == 0 ? 0 : static_cast<double>(received_) / std::max(seconds, 1e-6);
}

bool back_off(int attempt, const PeerLimits& limits, int cancel) {
  const auto wait = std::chrono::milliseconds(20LL << std::min(attempt, 7));
  const auto until = std::min(Clock::now() + wait, limits.deadline);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd fd{.fd = cancel, .events = POLLIN, .revents = 0};
    const int n = ::poll(&fd, 1, static_cast<int>(std::max<long long>(left, 0)));
    if (n > 0) return false;
    if (left <= 0) return Clock::now() < limits.deadline;
  }
}

}  // namespace hypertune::inline v0::detail
