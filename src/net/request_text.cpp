#include "request_text.hpp"

#include <hypertune/error.hpp>

#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/string_body.hpp>

namespace hypertune::inline v0::net {

namespace beast = boost::beast;
namespace http = beast::http;

void check_header(const std::string& name, const std::string& value) {
  for (const char c : value)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f)
      fail(Errc::input, "what is to be sent as '{}' has a control character or a line break in it", name);
}

std::string to_bytes(RequestText what, const Headers& more) {
  check_header("the request's path", what.target);
  http::request<http::string_body> request;
  request.version(11);
  request.method_string(what.method);
  request.target(what.target);
  request.set(http::field::host, what.host);
  request.set(http::field::user_agent, what.user_agent);
  request.set(http::field::accept, what.accept);
  for (const auto& [name, value] : more) {
    check_header(name, value);
    request.insert(name, value);
  }
  if (!what.content_type.empty()) {
    request.set(http::field::content_type, what.content_type);
    request.body() = std::move(what.body);
    request.prepare_payload();
  }
  std::string bytes;
  http::request_serializer<http::string_body> serializer(request);
  beast::error_code error;
  while (!error && !serializer.is_done())
    serializer.next(error, [&](beast::error_code&, const auto& buffers) {
      std::size_t size = 0;
      for (const auto buffer : beast::buffers_range(buffers)) {
        bytes.append(static_cast<const char*>(buffer.data()), buffer.size());
        size += buffer.size();
      }
      serializer.consume(size);
    });
  if (error) fail(Errc::usage, "this is no request: {}", error.message());
  return bytes;
}

}  // namespace hypertune::inline v0::net
