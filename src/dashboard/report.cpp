// Writes the page, its modules and its answers into one HTML file.
#include "page_files.hpp"
#include "page_modules.hpp"
#include "read_once.hpp"
#include "report_answers.hpp"

#include <hypertune/detail/hex.hpp>
#include <hypertune/error.hpp>
#include <hypertune/show/report.hpp>

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cstddef>

namespace hypertune::inline v0 {

namespace {

std::string text_of(std::string_view path) {
  auto text = dashboard::page_text(path);
  if (!text) fail(Errc::io, "this program lacks the page's file {}", path);
  return std::move(*text);
}

// Unpredictable for those who choose names in the experiment, because it is made afterwards.
std::string random_nonce() {
  std::array<unsigned char, 18> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    fail(Errc::io, "the system has no random numbers");
  return detail::to_hex(bytes);
}

// Escapes an SVG for a data: URL in an attribute.
std::string in_address(const std::string& svg) {
  std::string out;
  for (const char c : svg) {
    if (c == '%' || c == '#' || c == '"' || c == '<' || c == '>' || c == '&' || static_cast<unsigned char>(c) <= ' ')
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string report_html(const Reporting& reporting) {
  const auto experiments = dashboard::read_once(reporting.folders);
  dashboard::ReportAnswers answers(*experiments, reporting.cost, reporting.room);
  const std::string nonce = random_nonce();
  std::string out = fmt::format(
      R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{0}
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'nonce-{1}'; style-src 'nonce-{1}'; img-src data: blob:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>hypertune</title>
<link rel="icon" type="image/svg+xml" href="data:image/svg+xml,{2}">
<style nonce="{1}">
{3}{4}</style>
</head>
<body>
<noscript><p class="noscript">This report is drawn by JavaScript, which this browser does not run here. It asks nobody for anything.</p></noscript>
<script type="application/json" id="hypertune-answers">)",
      report_mark, nonce, in_address(text_of("/icon.svg")), text_of("/page.css"), text_of("/views.css"));
  out += answers.take();
  out += fmt::format("</script>\n<script nonce=\"{}\">", nonce);
  out += text_of("/vendor/echarts/echarts.min.js");
  out += fmt::format("</script>\n<script nonce=\"{}\">", nonce);
  out += dashboard::joined_modules("/main.js", text_of);
  out += "</script>\n</body>\n</html>\n";
  return out;
}

}  // namespace hypertune::inline v0
