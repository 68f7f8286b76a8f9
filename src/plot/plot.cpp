#include "plot.hpp"

#include "../dashboard/api.hpp"
#include "../dashboard/read_once.hpp"
#include "script.hpp"

#include <hypertune/error.hpp>
#include <hypertune/show/view/json_writer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::plot {

namespace {

// The font is written into an attribute of each text.
void check_font(const std::string& font) {
  const bool name = std::all_of(font.begin(), font.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ' ' || c == ',' ||
           c == '-';
  });
  if (!name)
    fail(Errc::usage, "'{}' is no font's name: letters, digits, spaces and hyphens, with commas between several", font);
}

std::string options_of(const Picture& picture) {
  view::JsonWriter out;
  out.begin_object().member("kind", picture.kind);
  std::vector<std::string> folders;
  for (const auto& folder : picture.folders) folders.push_back(folder.string());
  out.values("folders", folders);
  out.values("metrics", picture.metrics).values("parameters", picture.parameters);
  out.member("width", picture.width).member("height", picture.height);
  out.member("log", picture.log).member("logX", picture.log_x).member("time", picture.time);
  out.member("title", picture.title).member("font", picture.font).member("filter", picture.filter).end_object();
  return out.take();
}

std::string answer_of(const dashboard::Api& api, const std::string& target) {
  if (target == "options") fail(Errc::io, "a chart's script asks for what it has been told");
  return api.body(target);
}

}  // namespace

std::string svg(const Picture& picture) {
  check_font(picture.font);
  const auto experiments = dashboard::read_once(picture.folders);
  const dashboard::Api api(*experiments, {});
  const std::string options = options_of(picture);
  Script script([](std::string_view path) { return dashboard::page_text(path); },
                [&](const std::string& target) { return target == "options" ? options : answer_of(api, target); });
  // The picture is drawn synchronously. Timers are only for animations and incremental loading on a page.
  script.run("globalThis.setTimeout = () => 0; globalThis.clearTimeout = () => {};", "before.js");
  script.run(dashboard::page_text("/vendor/echarts/echarts.min.js").value_or(""), "echarts.min.js");
  return script.call(
      "import {plot} from './plot.js';\n"
      "globalThis.answer = plot(globalThis.echarts, ask, JSON.parse(ask('options')));\n",
      "start.js");
}

}  // namespace hypertune::inline v0::plot
