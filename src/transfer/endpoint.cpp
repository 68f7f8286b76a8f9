// Endpoint: parsing and printing the address of a CheckpointServer.
#include <hypertune/checkpoint/transfer/endpoint.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/hex.hpp>
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/error.hpp>

#include <cstdint>

namespace hypertune::inline v0 {

namespace {

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

[[noreturn]] void refuse(std::string_view text) {
  fail(Errc::input,
       "'{}' is no endpoint of checkpoints: write unix:/PATH, http://HOST:PORT, https://HOST:PORT#FINGERPRINT, "
       "https+unix:/PATH#FINGERPRINT, or file:/PATH",
       text);
}

}  // namespace

std::string Endpoint::to_string() const {
  const std::string pin = certificate.empty() ? "" : "#" + certificate;
  if (const auto* socket = std::get_if<UnixSocket>(&address))
    return (pin.empty() ? "unix:" : "https+unix:") + socket->path.string() + pin;
  if (const auto* shared = std::get_if<SharedDirectory>(&address)) return "file:" + shared->path.string();
  if (const auto* own = std::get_if<Connector>(&address)) return own->name + pin;
  const auto& tcp = std::get<Tcp>(address);
  const bool bracket = tcp.address.find(':') != std::string::npos;
  return detail::format("{}://{}{}{}:{}{}", pin.empty() ? "http" : "https", bracket ? "[" : "", tcp.address,
                        bracket ? "]" : "", tcp.port, pin);
}

Endpoint Endpoint::parse(std::string_view text) {
  const std::string_view whole = text;
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) fail(Errc::input, "an endpoint has control characters");
  Endpoint endpoint;
  if (take(text, "file:")) {
    if (text.empty()) refuse(whole);
    endpoint.address = SharedDirectory{text};
    return endpoint;
  }
  const bool local = take(text, "unix:");
  const bool tls_local = !local && take(text, "https+unix:");
  const bool tls = tls_local || (!local && take(text, "https://"));
  if (!local && !tls && !take(text, "http://")) refuse(whole);
  if (tls) {
    const auto mark = text.rfind('#');
    if (mark == std::string_view::npos) refuse(whole);
    endpoint.certificate = text.substr(mark + 1);
    text = text.substr(0, mark);
    if (!detail::is_hex(endpoint.certificate, 64))
      fail(Errc::input, "'{}' names no certificate: a fingerprint has 64 digits of 0-9a-f", whole);
  }
  if (local || tls_local) {
    if (text.empty()) refuse(whole);
    endpoint.address = UnixSocket{text};
    return endpoint;
  }
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) refuse(whole);
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    refuse(whole);
  Tcp tcp{.address = std::string(host), .port = 0};
  tcp.port = detail::parse_number<std::uint16_t>(port).value_or(0);
  if (host.empty() || host.find('/') != std::string_view::npos || tcp.port == 0) refuse(whole);
  endpoint.address = std::move(tcp);
  return endpoint;
}

}  // namespace hypertune::inline v0
