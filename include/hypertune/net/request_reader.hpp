// RequestReader: parses HTTP requests from bytes as they arrive. No I/O.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hypertune::inline v0::detail {

using HttpRequest = boost::beast::http::request<boost::beast::http::string_body>;

/// Reads the requests of one connection, one after the other.
///
/// Beast's parser must never see more than `largest_part` bytes that it has not taken: it throws an exception for parts
/// that are too large for it, and its own limit holds for the head alone.
class RequestReader {
 public:
  using ErrorCode = boost::system::error_code;
  static constexpr std::size_t largest_part = std::size_t{64} << 10U;

  /// `head`: most bytes of a request's first line and headers, largest_part at most. The same limit holds for the
  /// headers after a chunked body, and for the line that begins a chunk. `body`: most bytes of a body.
  RequestReader(std::size_t head, std::uint64_t body) : head_(std::min(head, largest_part)), body_(body) { begin(); }

  /// Begins the next request, with what has come of it.
  void begin() {
    seen_ = 0;
    parser_.emplace();
    parser_->eager(true);  // the body too
    parser_->header_limit(static_cast<std::uint32_t>(head_));
    parser_->body_limit(body_);
  }
  /// No byte of the request has come.
  bool empty() const { return buffer_.size() == 0 && seen_ == 0; }
  /// Where to put the bytes that come next. To be called when parse() has asked for more, or if empty().
  boost::asio::mutable_buffer prepare() {
    const std::size_t wanted = parser_->is_header_done() ? largest_part : 4096;
    return buffer_.prepare(std::min(wanted, largest_part - buffer_.size()));
  }
  void commit(std::size_t bytes) { buffer_.commit(bytes); }

  /// Continues with the bytes that have come. nullopt: more are needed. Otherwise the request is complete, or the error
  /// (of Beast's category) says why it is none; `header_limit` if its head or trailer is too large.
  std::optional<ErrorCode> parse() {
    namespace http = boost::beast::http;
    for (;;) {
      const bool in_head = !parser_->is_header_done();
      // Beast asserts that the rest of a chunked request, which has at least 5 bytes, does not come in smaller pieces.
      if (buffer_.size() == 0 || (!in_head && parser_->chunked() && buffer_.size() < 5)) return std::nullopt;
      const std::size_t size = std::min(buffer_.size(), in_head ? head_ - seen_ : head_);
      ErrorCode error;
      const std::size_t used = parser_->put(boost::asio::const_buffer(buffer_.data().data(), size), error);
      buffer_.consume(used);
      seen_ += used;
      if (error && error != http::error::need_more) return error;
      if (parser_->is_done()) return ErrorCode();
      if (!parser_->is_header_done()) {
        if (seen_ + size - used >= head_) return http::make_error_code(http::error::header_limit);
        return std::nullopt;
      }
      if (used == 0 && size == head_) return http::make_error_code(http::error::header_limit);
      if (buffer_.size() == size - used) return std::nullopt;
    }
  }

  /// Whether the client waits to be told that its body is wanted (RFC 9110, 10.1.1) before it sends any of it.
  bool expects_continue() const {
    namespace http = boost::beast::http;
    return parser_->is_header_done() && !parser_->is_done() && buffer_.size() == 0 && parser_->get().version() >= 11 &&
           boost::beast::iequals(parser_->get()[http::field::expect], "100-continue") && parser_->get().body().empty();
  }

  /// What has been read of the request; complete after parse() has said so.
  const HttpRequest& request() const { return parser_->get(); }

 private:
  const std::size_t head_;
  const std::uint64_t body_;
  std::size_t seen_ = 0;  // bytes of the request that the parser has taken
  boost::beast::flat_buffer buffer_{largest_part};
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
};

}  // namespace hypertune::inline v0::detail
