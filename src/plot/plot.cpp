#include "plot.hpp"

#include "../dashboard/read_once.hpp"
#include "charts.hpp"
#include "text.hpp"

#include <hypertune/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::plot {

namespace {

// The options that a kind uses besides width, height, title and font. Others are refused, so that none is ignored
// silently.
struct Kind {
  std::string_view name, options;
  Chart (*draw)(Source&);
};
constexpr std::array all_kinds{
    Kind{"best", "metric log time", best},
    Kind{"curves", "metric log log-x time filter", curves},
    Kind{"rungs", "", rungs},
    Kind{"importance", "metric", importance},
    Kind{"slice", "metric parameter log filter", slice},
    Kind{"contour", "metric parameter filter", contour_or_rank},
    Kind{"rank", "metric parameter filter", contour_or_rank},
    Kind{"parallel", "metric parameter filter", parallel},
    Kind{"pareto", "metric log log-x filter", pareto_or_against},
    Kind{"against", "metric log log-x filter", pareto_or_against},
    Kind{"hypervolume", "", hypervolume},
    Kind{"edf", "metric log", edf},
    Kind{"timeline", "", timeline_or_slots},
    Kind{"slots", "", timeline_or_slots},
    Kind{"lineage", "", lineage_or_schedule},
    Kind{"schedule", "parameter log", lineage_or_schedule},
};

const Kind& kind_of(const Picture& picture) {
  const auto* const found =
      std::find_if(all_kinds.begin(), all_kinds.end(), [&](const Kind& kind) { return kind.name == picture.kind; });
  if (found == all_kinds.end()) {
    Names names;
    for (const auto& kind : all_kinds) names.emplace_back(kind.name);
    fail(Errc::input, "there is no kind of chart '{}'; there are: {}", shortened(picture.kind, 100), listed(names));
  }
  for (const auto& [option, given] :
       {std::pair("metric", !picture.metrics.empty()), std::pair("parameter", !picture.parameters.empty()),
        std::pair("log", picture.log), std::pair("log-x", picture.log_x), std::pair("time", picture.time),
        std::pair("filter", !picture.filter.empty())})
    if (given && fmt::format(" {} ", found->options).find(fmt::format(" {} ", option)) == std::string::npos)
      fail(Errc::input, "'{}' takes no --{}", picture.kind, option);
  if (picture.metrics.size() > 1 && found->draw != pareto_or_against)
    fail(Errc::input, "'{}' takes one metric, not {}", picture.kind, picture.metrics.size());
  return *found;
}

// `folder`: of an experiment among several.
void check_metric(const Source& source, const Source& first, std::string_view folder) {
  const std::string metric = shortened(first.metric, 100);
  if (!contains(source.metrics, first.metric))
    fail(Errc::input, "no trial of the experiment in '{}' has reported {}", folder,
         source.metrics.empty() ? "a metric" : fmt::format("'{}'; there are: {}", metric, listed(source.metrics)));
  if (first.picture.kind != "best") return;
  if (!contains(source.objectives, first.metric))
    fail(Errc::input, "'{}' is no objective of the experiment in '{}'; there are: {}", metric, folder,
         listed(source.objectives));
  if (const auto own = source.mode_of(first.metric), other = first.mode_of(first.metric); own != other)
    fail(Errc::input, "'{}' is to {} in one experiment and to {} in another", metric, other, own);
}

// The font is written into an attribute.
void check_font(const std::string& font) {
  const bool name = std::all_of(font.begin(), font.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ' ' || c == ',' ||
           c == '-';
  });
  if (!name)
    fail(Errc::usage, "'{}' is no font's name: letters, digits, spaces and hyphens, with commas between several", font);
}

}  // namespace

std::string svg(const Picture& picture) {
  check_font(picture.font);
  const auto experiments = dashboard::read_once(picture.folders);
  const dashboard::Api api(*experiments, {});
  const Kind& kind = kind_of(picture);
  const auto answer = json::parse(api.body("/api/experiments"));
  const auto& all = list(at(answer, "experiments"));
  if (all.size() != 1 && kind.name != "best" && kind.name != "edf")
    fail(Errc::input, "{}, and '{}' is drawn of one: name the folder of one; of several are drawn: best, edf",
         picture.folders.size() == 1
             ? fmt::format("there are {} experiments in '{}'", all.size(), picture.folders[0].string())
             : fmt::format("{} experiments are named", all.size()),
         kind.name);
  std::vector<Source> sources;
  for (const auto& one : all) sources.emplace_back(api, picture, std::string(text(at(one, "id"))));
  if (sources.size() == 1)
    return svg_of(kind.draw(sources.front()), picture.width, picture.height, picture.title, picture.font);

  const Source& first = sources.front();
  if (sources.size() > std::size(colour::series))
    fail(Errc::input, "'{}' draws {} experiments at most, not {}", kind.name, std::size(colour::series),
         sources.size());
  Names names;  // or folders, if two have the same name
  for (std::size_t i = 0; i < sources.size(); ++i) {
    check_metric(sources[i], first, shortened(text(at(all[i], "folder")), 200));
    const std::string name = sources[i].name();
    const auto alike =
        std::count_if(sources.begin(), sources.end(), [&](const Source& one) { return one.name() == name; });
    names.push_back(alike == 1 && !name.empty() ? name : std::string(text(at(all[i], "id"))));
  }
  return svg_of(together(sources, names), picture.width, picture.height, picture.title, picture.font);
}

}  // namespace hypertune::inline v0::plot
