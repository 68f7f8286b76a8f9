// Part of hypertune::k8s.
#include "status.hpp"

#include <hypertune/detail/percent.hpp>
#include <hypertune/detail/utf8.hpp>
#include <hypertune/error.hpp>
#include <hypertune/k8s/request.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace hypertune::inline v0::k8s {

namespace json = boost::json;

std::string api_path(std::initializer_list<std::string_view> parts) {
  std::string path;
  for (const auto part : parts) path += "/" + hypertune::detail::percent_encoded(part);
  return path;
}

json::value Answer::json() const {
  auto value = parse_json(body);
  if (!value) fail(Errc::protocol, "the API server's answer is no JSON: '{}'", detail::one_line(body, 80));
  return *std::move(value);
}

namespace detail {

std::string one_line(std::string_view text, std::size_t most) {
  std::string line;
  for (const char c : text.substr(0, hypertune::detail::utf8_cut(text, most))) {
    const bool blank = static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
    if (!blank)
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  while (line.ends_with(' ')) line.pop_back();
  return text.size() > most ? line + "…" : line;
}

std::string without_queries(std::string_view text) {
  std::string shorter;
  for (bool url = false, query = false; const char c : text) {
    if (c == ' ' || c == '"') url = query = false;
    url = url || (c == '/' && shorter.ends_with(":/"));
    query = query || (url && c == '?');
    if (!query) shorter += c;
  }
  return shorter;
}

std::string reason_of(std::string_view body) {
  const auto value = parse_json(body);
  const auto* status = value ? value->if_object() : nullptr;
  return status != nullptr && text_in(*status, "kind") == "Status" ? std::string(text_in(*status, "reason")) : "";
}

ApiError api_error(int status, std::string_view body, std::string_view doing, std::string_view origin) {
  constexpr std::size_t max_details = std::size_t{64} << 10U;
  const auto value = parse_json(body);
  const auto* object = value ? value->if_object() : nullptr;
  std::string reason, message;
  if (object != nullptr && text_in(*object, "kind") == "Status") {
    reason = text_in(*object, "reason");
    message = one_line(without_queries(text_in(*object, "message")), 2000);
  } else if (body.size() <= 2000) {  // longer text is a proxy's HTML page
    message = one_line(body);
  }
  if (message.empty()) message = fmt::format("the API server answered HTTP {}", status);
  if (status == 401)
    message += fmt::format("; the credentials {}{}are not valid (any more)", origin.empty() ? "" : "of ",
                           origin.empty() ? "" : std::string(origin) + " ");
  return {status, std::move(reason), fmt::format("{} ({})", message, doing), std::string(body.substr(0, max_details))};
}

}  // namespace detail

}  // namespace hypertune::inline v0::k8s
