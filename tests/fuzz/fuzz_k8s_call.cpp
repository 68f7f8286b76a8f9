// Any bytes are a worker's request or none, and where the driver is or an Error of kind `input`.
#include "connect_request.hpp"

#include <hypertune/error.hpp>
#include <hypertune/k8s/driver_address.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace hypertune;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace http = boost::beast::http;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static const Secret token("0123456789abcdef");
  http::request_parser<http::empty_body> parser;
  parser.header_limit(8192);
  parser.eager(true);
  boost::system::error_code error;
  parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  if (!error && parser.is_done()) {
    const auto decision = k8s::check_connect_request(parser.get(), token);
    const bool in = decision.status == http::status::switching_protocols;
    if (in != k8s::is_worker_name(decision.worker) || in != decision.why.empty()) std::abort();
    if (in && bytes.find(token.reveal()) == std::string_view::npos) std::abort();
  }
  try {
    const auto address = k8s::DriverAddress::parse(bytes);
    if (!(k8s::DriverAddress::parse(address.to_string()) == address)) std::abort();
  } catch (const Error& e) {
    if (e.code() != Errc::input) std::abort();
  }
  return 0;
}
