#include "response_reader.hpp"

#include <hypertune/detail/parse_number.hpp>
#include <hypertune/error.hpp>

#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>

#include <algorithm>

namespace hypertune::inline v0::net {

namespace beast = boost::beast;
namespace http = beast::http;

namespace {

/// A body that is passed on as it arrives.
struct StreamedBody {
  struct value_type {
    ResponseReader::Take take;
  };
  class reader {
   public:
    template <bool isRequest, class Fields>
    reader(http::header<isRequest, Fields>&, value_type& value) : value_(value) {}
    void init(const boost::optional<std::uint64_t>&, beast::error_code& error) { error = {}; }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, beast::error_code& error) {
      error = {};
      std::size_t size = 0;
      for (const auto buffer : beast::buffers_range(buffers)) {
        size += buffer.size();
        value_.take({static_cast<const char*>(buffer.data()), buffer.size()});
      }
      return size;
    }
    void finish(beast::error_code& error) { error = {}; }

   private:
    value_type& value_;
  };
};

}  // namespace

/// Most bytes that the parser sees before it takes some. It throws an exception for parts that are too large for it, and
/// its own limit holds for the head alone.
constexpr std::size_t largest_part = std::size_t{64} << 10U;

struct ResponseReader::State {
  http::response_parser<StreamedBody> parser;
  std::string waiting;  // incomplete headers
  bool begun = false;
};

ResponseReader::ResponseReader(std::size_t max_body, Take take, bool has_body)
    : body_(std::make_unique<std::string>()), state_(std::make_unique<State>()) {
  auto& parser = state_->parser;
  parser.eager(true);
  parser.skip(!has_body);
  parser.header_limit(largest_part);
  parser.body_limit(max_body == 0 ? boost::optional<std::uint64_t>() : boost::optional<std::uint64_t>(max_body));
  parser.get().body().take = take ? std::move(take) : [body = body_.get()](std::string_view piece) { *body += piece; };
}
ResponseReader::ResponseReader(ResponseReader&&) noexcept = default;
ResponseReader::~ResponseReader() = default;

std::size_t ResponseReader::feed(std::string_view bytes) {
  auto& [parser, waiting, begun] = *state_;
  begun = begun || !bytes.empty();
  const std::size_t before = waiting.size();
  std::string_view all = bytes;
  if (before > 0) all = waiting += bytes;
  std::size_t used = 0;
  beast::error_code error;
  while (used < all.size() && !parser.is_done()) {
    const std::size_t size = std::min(all.size() - used, largest_part);
    const auto n = parser.put(boost::asio::const_buffer(all.data() + used, size), error);
    used += n;
    if (error == http::error::need_more) {
      if (n == 0 && size == largest_part) {
        error = http::error::header_limit;
      } else if (n > 0 && used + (size - n) < all.size()) {
        continue;  // there is more than it was shown
      } else {
        break;
      }
    }
    if (error == http::error::body_limit) fail(Errc::protocol, "the server's answer is longer than is allowed here");
    if (error) fail(Errc::protocol, "the server's answer is no HTTP: {}", error.message());
    if (n == 0) break;
  }
  if (parser.is_done()) return used - before;
  waiting = std::string(all.substr(used));
  return bytes.size();
}

bool ResponseReader::end() {
  auto& parser = state_->parser;
  if (!parser.is_header_done()) return false;
  beast::error_code error;
  if (!parser.is_done()) parser.put_eof(error);
  return !error && parser.is_done();
}

bool ResponseReader::begun() const { return state_->begun; }
bool ResponseReader::headed() const { return state_->parser.is_header_done(); }
bool ResponseReader::done() const { return state_->parser.is_done(); }
bool ResponseReader::keep_alive() const { return done() && state_->parser.keep_alive(); }
int ResponseReader::status() const { return static_cast<int>(state_->parser.get().result_int()); }
std::string ResponseReader::header(const char* name) const { return std::string(state_->parser.get()[name]); }

std::optional<double> ResponseReader::retry_after() const {
  return hypertune::detail::parse_number<unsigned>(header("Retry-After"));
}

}  // namespace hypertune::inline v0::net
