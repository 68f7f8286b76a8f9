// RequestHandler: answers the requests of one connection to a CheckpointServer.
#include "answers.hpp"

#include "target.hpp"

#include <hypertune/checkpoint/detail/folder_seal.hpp>
#include <hypertune/checkpoint/transfer/fetch.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>

#include <boost/asio/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using ErrorCode = Wire::ErrorCode;
using Header = http::response<http::empty_body>;
using Clock = Wire::Clock;

constexpr std::size_t max_header = 8192;
constexpr std::size_t send_block = std::size_t{128} << 10U;
constexpr std::chrono::milliseconds patience(250);  // how long a request waits for chunks that are being computed

class RequestHandler {
 public:
  RequestHandler(ServerShared& server, Wire& wire, const std::function<void()>& authenticated,
                 const std::function<void(bool)>& idle)
      : server_(server), wire_(wire), authenticated_(authenticated), idle_(idle) {}

  /// Answers one request; false if the connection should end.
  bool answer_next();

 private:
  bool receive();
  bool refuse(http::status status, std::string_view why, bool proceed = false);
  bool send_text(http::status status, std::string_view type, std::string_view text);
  bool send_header(Header& header, bool body_follows);
  bool send(const Target& target);
  bool send_chunks();
  bool send_data();
  bool send_plain(ByteRange range);
  bool send_blocks(ByteRange range);
  bool send_file(std::size_t file, ByteRange part);
  std::optional<bool> send_compressed(ByteRange range);
  bool read_range(ByteRange range, char* into);
  bool open_file(std::size_t index);
  bool rated(std::size_t bytes);

  ServerShared& server_;
  Wire& wire_;
  const std::function<void()>& authenticated_;
  const std::function<void(bool)>& idle_;
  beast::flat_buffer buffer_{max_header + 4096};
  http::request<http::empty_body> request_;
  bool known_ = false;
  std::shared_ptr<Served> served_;  // the checkpoint of the last request
  std::size_t file_index_ = 0;
  Descriptor file_;
  std::unique_ptr<char[]> block_;
  int no_zstd_for_ = 0;  // number of pieces to send uncompressed, after a sample that did not shrink
};

bool RequestHandler::receive() {
  ErrorCode error;
  if (buffer_.size() == 0) {
    idle_(true);
    wire_.set_cancel(server_.stop.descriptor());
    wire_.set_deadline(Clock::now() + (known_ ? server_.options.idle_timeout : server_.options.request_timeout));
    wire_.wait_readable(error);
    idle_(false);
    if (error) return false;
  }
  if (server_.stop.raised()) return false;
  wire_.set_cancel(server_.cut.descriptor());
  wire_.set_deadline(Clock::now() + server_.options.request_timeout);
  http::request_parser<http::empty_body> parser;
  parser.header_limit(max_header);
  parser.body_limit(0);
  http::read(wire_, buffer_, parser, error);
  if (!error) {
    request_ = parser.release();
    return true;
  }
  if (error == http::error::end_of_stream) return false;
  server_.refused += 1;
  if (error.category() == http::make_error_code(http::error::bad_method).category()) {
    wire_.set_deadline(Clock::now() + std::chrono::seconds(1));
    request_ = {};
    request_.version(11);
    static_cast<void>(send_text(
        error == http::error::header_limit ? http::status::request_header_fields_too_large : http::status::bad_request,
        "text/plain", "this is no request that is answered here\n"));
  }
  return false;
}

bool RequestHandler::answer_next() {
  if (!receive()) return false;
  wire_.set_stall(server_.options.stall_timeout);
  if (!server_.options.token.empty()) {
    const auto shown = request_[http::field::authorization];
    const std::string_view text(shown.data(), shown.size());
    constexpr std::string_view scheme = "Bearer ";
    if (!text.starts_with(scheme) || !server_.options.token.matches(text.substr(scheme.size())))
      return refuse(http::status::unauthorized, "the token is missing or not this experiment's");
  }
  if (request_.method() != http::verb::get)
    return refuse(http::status::method_not_allowed, "only GET is answered here");
  const auto target = parse_target({request_.target().data(), request_.target().size()});
  if (!target) return refuse(http::status::not_found, "there is nothing of this name");
  if (!known_) authenticated_();
  known_ = true;
  server_.requests += 1;
  try {
    return send(*target) && request_.keep_alive();
  } catch (const Error& e) {
    return refuse(e.code() == Errc::corrupt ? http::status::gone : http::status::internal_server_error, e.what(), true);
  }
}

bool RequestHandler::refuse(http::status status, std::string_view why, bool proceed) {
  server_.refused += 1;
  return send_text(status, "text/plain", std::string(why) + "\n") && proceed && request_.keep_alive();
}

bool RequestHandler::send_header(Header& header, bool body_follows) {
  header.version(11);
  header.set(http::field::server, "hypertune");
  header.keep_alive(request_.keep_alive());
  http::response_serializer<http::empty_body> serializer(header);
  ErrorCode error;
  wire_.set_corked(body_follows);
  http::write_header(wire_, serializer, error);
  wire_.set_corked(false);
  return !error;
}

bool RequestHandler::send_text(http::status status, std::string_view type, std::string_view text) {
  Header header(status, 11);
  header.set(http::field::content_type, beast::string_view(type.data(), type.size()));
  if (status == http::status::unauthorized) header.set(http::field::www_authenticate, "Bearer");
  header.content_length(text.size());
  if (!send_header(header, !text.empty())) return false;
  while (!text.empty()) {
    const std::size_t n = std::min(text.size(), server_.rate.slice(send_block));
    ErrorCode error;
    if (!rated(n)) return false;
    wire_.send_all(text.data(), n, false, error);
    if (error) return false;
    text.remove_prefix(n);
  }
  return true;
}

/// Waits as the rate limit requires. False if the connection should end.
bool RequestHandler::rated(std::size_t bytes) {
  ErrorCode error;
  const auto now = Clock::now();
  const auto when = server_.rate.take(bytes, now);
  if (when > now) {
    wire_.set_deadline(Clock::time_point::max());  // this wait is not the peer's fault
    wire_.wait_until(when, error);
    wire_.set_stall(server_.options.stall_timeout);
  }
  server_.bytes_sent += bytes;
  return !error;
}

bool RequestHandler::send(const Target& target) {
  if (target.what == Target::What::list) {
    std::string lines;
    for (const CheckpointInfo& info : server_.checkpoints.list(target.info.trial))
      if (is_plain_utf8(info.name)) lines += info_line(info);
    return send_text(http::status::ok, "text/plain", lines);
  }
  if (!served_ || served_->found.info.digest != target.info.digest || served_->found.info.trial != target.info.trial ||
      !served_->in_place()) {
    file_ = {};
    served_ = server_.checkpoints.find(target.info);
  }
  if (!served_) return refuse(http::status::not_found, "there is no such checkpoint here", true);
  switch (target.what) {
    case Target::What::manifest: return send_text(http::status::ok, "application/json", served_->found.text);
    case Target::What::chunks: return send_chunks();
    case Target::What::data: return send_data();
    default: break;
  }
  if (!find_checkpoint(served_->store, served_->found.info, target.deep))
    return refuse(http::status::gone, "the checkpoint is damaged here", true);
  return send_text(http::status::ok, "text/plain", info_line(served_->found.info));
}

bool RequestHandler::send_chunks() {
  const auto chunks = server_.checkpoints.chunks(served_, patience);
  if (!chunks) return send_text(http::status::accepted, "text/plain", "being computed\n");
  return send_text(http::status::ok, "application/octet-stream", *chunks);
}

bool RequestHandler::send_data() {
  const auto field = request_[http::field::range];
  const auto range = parse_range({field.data(), field.size()}, served_->layout.total());
  if (!range) return refuse(http::status::range_not_satisfiable, "ask for one range of bytes within the content", true);
  if (server_.options.compress && request_[http::field::accept_encoding] == "zstd")
    if (const auto sent = send_compressed(*range)) return *sent;
  return send_plain(*range);
}

namespace {

Header data_header(ByteRange range, std::uint64_t total) {
  Header header(http::status::partial_content, 11);
  header.set(http::field::content_range, detail::format("bytes {}-{}/{}", range.begin, range.end - 1, total));
  header.set(http::field::content_type, "application/octet-stream");
  return header;
}

}  // namespace

/// nullopt: send it uncompressed instead.
std::optional<bool> RequestHandler::send_compressed(ByteRange range) {
  if (range.size() > largest_compressed_piece || range.size() < 512) return std::nullopt;
  if (no_zstd_for_ > 0) {
    --no_zstd_for_;
    return std::nullopt;
  }
  auto compressor = server_.compressors.try_borrow();
  if (!compressor) return std::nullopt;
  const auto size = static_cast<std::size_t>(range.size());
  if (!read_range(range, compressor->input())) return refuse(http::status::gone, "its files are not what was sealed");
  const auto packed = compressor->promising(size) ? compressor->compress(size) : std::string_view();
  if (packed.empty()) {
    no_zstd_for_ = 15;
    return std::nullopt;
  }
  Header header = data_header(range, served_->layout.total());
  header.set(http::field::content_encoding, "zstd");
  header.content_length(packed.size());
  if (!send_header(header, true)) return false;
  for (std::string_view left = packed; !left.empty();) {
    const std::size_t n = std::min(left.size(), server_.rate.slice(send_block));
    ErrorCode error;
    if (!rated(n)) return false;
    wire_.send_all(left.data(), n, n < left.size(), error);
    if (error) return false;
    left.remove_prefix(n);
  }
  return true;
}

bool RequestHandler::open_file(std::size_t index) {
  if (file_ && file_index_ == index) return true;
  file_ = open_regular(served_->directory.get(), served_->found.manifest.files[index].name);
  file_index_ = index;
  struct stat status{};
  return file_ && ::fstat(file_.get(), &status) == 0 &&
         static_cast<std::uint64_t>(status.st_size) == served_->found.manifest.files[index].size;
}

bool RequestHandler::read_range(ByteRange range, char* into) {
  while (range.begin < range.end) {
    const std::size_t index = served_->layout.file_at(range.begin);
    if (!open_file(index)) return false;
    const std::uint64_t end = std::min(range.end, served_->layout.end(index));
    while (range.begin < end) {
      const auto offset = static_cast<off_t>(range.begin - served_->layout.begin(index));
      ssize_t n = 0;
      do n = ::pread(file_.get(), into, static_cast<std::size_t>(end - range.begin), offset);
      while (n < 0 && errno == EINTR);
      if (n <= 0) return false;
      into += n;
      range.begin += static_cast<std::uint64_t>(n);
    }
  }
  return true;
}

bool RequestHandler::send_plain(ByteRange range) {
  // Errors must be found before the header promises the content.
  if (!open_file(served_->layout.file_at(range.begin)))
    return refuse(http::status::gone, "its files are not what was sealed");
  Header header = data_header(range, served_->layout.total());
  header.content_length(range.size());
  if (!send_header(header, true)) return false;
  // Large parts of a file are sent from the page cache by sendfile(); small files are combined into blocks.
  while (range.begin < range.end) {
    ByteRange part = range;
    while (part.begin < part.end) {
      const std::size_t index = served_->layout.file_at(part.begin);
      const std::uint64_t end = std::min(part.end, served_->layout.end(index));
      if (!wire_.encrypted() && end - part.begin >= send_block) {
        if (part.begin > range.begin && !send_blocks({range.begin, part.begin})) return false;
        if (!send_file(index, {part.begin, end})) return false;
        range.begin = end;
        break;
      }
      part.begin = end;
    }
    if (part.begin >= part.end && range.begin < range.end) return send_blocks(range);
  }
  return true;
}

bool RequestHandler::send_file(std::size_t file, ByteRange part) {
  if (!open_file(file)) return false;
  auto offset = static_cast<off_t>(part.begin - served_->layout.begin(file));
  for (std::uint64_t left = part.size(); left > 0;) {
    const auto slice = static_cast<std::size_t>(std::min(left, server_.rate.slice(std::uint64_t{1} << 20U)));
    if (!rated(slice)) return false;
    for (std::size_t sent = 0; sent < slice;) {
      ErrorCode error;
      const std::size_t n = wire_.send_file(file_.get(), offset, slice - sent, error);
      if (error || n == 0) return false;
      sent += n;
    }
    left -= slice;
  }
  return true;
}

bool RequestHandler::send_blocks(ByteRange range) {
  if (!block_) block_ = std::make_unique_for_overwrite<char[]>(send_block);
  while (range.begin < range.end) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(range.size(), server_.rate.slice(send_block)));
    if (!read_range({range.begin, range.begin + size}, block_.get()) || !rated(size)) return false;
    ErrorCode error;
    wire_.send_all(block_.get(), size, size < range.size(), error);
    if (error) return false;
    range.begin += size;
  }
  return true;
}

}  // namespace

void handle_requests(ServerShared& server, Wire& wire, const std::function<void()>& authenticated,
                     const std::function<void(bool)>& idle) {
  RequestHandler handler(server, wire, authenticated, idle);
  while (handler.answer_next()) {}
}

}  // namespace hypertune::inline v0::detail
