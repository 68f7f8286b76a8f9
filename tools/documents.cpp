#include "documents.hpp"

#include "commands.hpp"
#include "cost.hpp"

#include <hypertune/detail/say.hpp>
#include <hypertune/error.hpp>
#include <hypertune/show/report.hpp>

#include <fmt/format.h>
#include <plot.hpp>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

namespace fs = std::filesystem;

namespace {

// An existing file is only replaced if it is of the same kind, which is recognised by `mark` near its beginning.
[[maybe_unused]] void check_output(const fs::path& file, std::string_view mark, std::string_view kind, bool force) {
  std::error_code none;
  if (fs::is_directory(file, none)) fail(Errc::usage, "'{}' is a folder: name a file in it", file.string());
  if (force || !fs::is_regular_file(file, none) || fs::file_size(file, none) == 0) return;
  std::ifstream old(file, std::ios::binary);
  std::string head(2048, '\0');
  old.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(old.gcount()));
  if (head.find(mark) == std::string::npos)
    fail(Errc::usage, "'{}' exists and is no {}: name another file, or replace it with --force", file.string(), kind);
}

// Writes a temporary file and renames it, so that neither a reader nor a full disk leaves a partial file.
[[maybe_unused]] void write_whole(const fs::path& file, std::string_view text) {
  std::error_code none;
  if (fs::exists(file, none) && !fs::is_regular_file(file, none)) {  // /dev/stdout, a pipe
    std::ofstream out(file, std::ios::binary);
    if (!out.write(text.data(), static_cast<std::streamsize>(text.size())).flush())
      fail(Errc::io, "cannot write '{}'", file.string());
    return;
  }
  const fs::path target = fs::is_symlink(file, none) ? fs::canonical(file, none) : file;
  const fs::path aside = target.string() + fmt::format(".new-{}", ::getpid());
  try {
    std::ofstream out(aside, std::ios::binary | std::ios::trunc);
    if (!out) fail(Errc::usage, "cannot write '{}': is there such a folder, and may you write into it?", file.string());
    if (!out.write(text.data(), static_cast<std::streamsize>(text.size())).flush())
      fail(Errc::io, "cannot write '{}': is the disk full?", file.string());
    out.close();
    fs::rename(aside, target);
  } catch (...) {
    fs::remove(aside, none);
    throw;
  }
}

struct ReportArguments {
  std::vector<std::string> folders;
  std::string output = "report.html";
  double megabytes = 8;
  bool force = false;
};

int report([[maybe_unused]] const ReportArguments& arguments) {
#ifdef HYPERTUNE_HAS_DASHBOARD
  check_output(arguments.output, report_mark, "report", arguments.force);
  Reporting reporting;
  for (const auto& folder : arguments.folders) reporting.folders.emplace_back(folder);
  reporting.room = static_cast<std::size_t>(arguments.megabytes * 1e6);
  reporting.cost = [](const fs::path& folder) { return cost_brief(folder); };
  const std::string text = report_html(reporting);
  write_whole(arguments.output, text);
  detail::say(fmt::format("hypertune: wrote {} ({:.1f} MB)", arguments.output, static_cast<double>(text.size()) / 1e6));
  return exit_done;
#else
  fail(Errc::usage, "this hypertune was built without its dashboard (gzip was missing), which reports are made of");
#endif
}

void add_report(CLI::App& app, std::function<int()>& chosen) {
  auto arguments = std::make_shared<ReportArguments>();
  auto* command =
      app.add_subcommand("report", "the dashboard's page of experiments as one file, which needs no server");
  command->add_option("DIR", arguments->folders, "experiments' folders, or folders that have some below them")
      ->required();
  command->add_option("-o,--output", arguments->output, "the file to write")->capture_default_str();
  command
      ->add_option("--megabytes", arguments->megabytes,
                   "about how large the data in it may be; the page is 1.4 MB more, and says what was left out")
      ->check(CLI::Range(0.02, 1000.0))
      ->capture_default_str();
  command->add_flag("--force", arguments->force, "replace a file that is no report");
  command->callback([arguments, &chosen] { chosen = [arguments] { return report(*arguments); }; });
}

struct PlotArguments {
  plot::Picture picture;
  std::string folder, output;
  std::vector<std::string> more;  // words after the first two
  bool force = false;
};

// DIR KIND, or DIR DIR… KIND.
[[maybe_unused]] plot::Picture picture_of(const PlotArguments& arguments) {
  auto picture = arguments.picture;
  picture.folders.emplace_back(arguments.folder);
  if (arguments.more.empty()) return picture;
  const auto is_kind = [](std::string_view word) {
    return !word.empty() && fmt::format(",{},", plot::kinds).find(fmt::format(",{},", word)) != std::string::npos;
  };
  std::vector<std::string> words{picture.kind};
  words.insert(words.end(), arguments.more.begin(), arguments.more.end());
  const auto kind = std::find_if(words.begin(), words.end(), is_kind);
  if (!is_kind(words.back()) && kind != words.end())
    fail(Errc::usage, "the kind of chart comes last: hypertune plot DIR DIR… {}", *kind);
  picture.kind = std::move(words.back());
  words.pop_back();
  picture.folders.insert(picture.folders.end(), words.begin(), words.end());
  return picture;
}

int draw([[maybe_unused]] const PlotArguments& arguments) {
#ifdef HYPERTUNE_HAS_DASHBOARD
  if (!arguments.output.empty()) check_output(arguments.output, "<svg", "SVG", arguments.force);
  const std::string text = plot::svg(picture_of(arguments));
  if (arguments.output.empty())
    fmt::print("{}", text);
  else
    write_whole(arguments.output, text);
  return exit_done;
#else
  fail(Errc::usage, "this hypertune was built without its dashboard, and so without charts (gzip)");
#endif
}

void add_plot(CLI::App& app, std::function<int()>& chosen) {
  auto arguments = std::make_shared<PlotArguments>();
  auto& picture = arguments->picture;
  auto* command = app.add_subcommand("plot", "a chart of an experiment as SVG, for papers; of several: DIR DIR… KIND");
  command->add_option("DIR", arguments->folder, "the experiment's folder")->required();
  // An invalid kind is reported by the plot itself; the list here is for completion and help.
  command->add_option("KIND", picture.kind, "what of the dashboard's page")
      ->required()
      ->type_name(fmt::format("TEXT:{{{}}}", plot::kinds));
  command->add_option("MORE", arguments->more,
                      "best and edf draw several experiments over each other: KIND comes last");
  command->add_option("-o,--output", arguments->output, "the file to write; none: the standard output");
  command
      ->add_option("--metric", picture.metrics,
                   "in place of the first objective; pareto and against: two, across and up")
      ->allow_extra_args(false);
  command
      ->add_option("--parameter", picture.parameters,
                   "in place of those that matter most; contour and rank: two, across and up; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--width", picture.width, "in pixels")->check(CLI::Range(200, 4000))->capture_default_str();
  command->add_option("--height", picture.height, "in pixels")->check(CLI::Range(120, 4000))->capture_default_str();
  command->add_flag("--log", picture.log, "values on a logarithmic scale");
  command->add_flag("--log-x", picture.log_x, "the axis across, too");
  command->add_flag("--time", picture.time, "best and curves: over time in place of trials or steps");
  command->add_option("--filter", picture.filter, "only these trials, as the dashboard's filter has it: 'lr>0.001'");
  command->add_option("--title", picture.title, "a line above the chart");
  command->add_option("--font", picture.font, "the font's name, or several with commas between them");
  command->add_flag("--force", arguments->force, "replace a file that is no SVG");
  command->callback([arguments, &chosen] { chosen = [arguments] { return draw(*arguments); }; });
}

}  // namespace

void add_document_commands(CLI::App& app, std::function<int()>& chosen) {
  add_report(app, chosen);
  add_plot(app, chosen);
}

}  // namespace hypertune::inline v0::command
