// /api/trial and /api/log: answers that are read from the folder on request.
#include "api.hpp"

#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/detail/utf8.hpp>
#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/show/detail/view/answers.hpp>
#include <hypertune/tune/detail/requests/control.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace hypertune::inline v0::dashboard {

using view::Curve;
using view::ExperimentView;
using view::JsonWriter;
using view::Query;
using view::TrialRow;

namespace {

// Opens a log if it is a regular file, in a folder of the experiment: a trial may have put anything in their place, such
// as a link to what its user alone may read.
detail::Descriptor open_log(const std::filesystem::path& folder, TrialId trial, struct stat& status) {
  const auto trials = detail::open_at(AT_FDCWD, (folder / "trials").c_str(), O_PATH | O_DIRECTORY);
  if (!trials) return {};
  auto file = detail::open_below(trials.get(), std::to_string(trial) + "/log");
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return file;
}

TrialId trial_number(const Query& query) {
  if (query.text("trial").empty()) fail(Errc::input, "name a trial: ?trial=N");
  return query.whole("trial", 0, 0, std::numeric_limits<std::int64_t>::max());
}

const TrialRow& row_of(const ExperimentView& seen, TrialId id) {
  const TrialRow* row = seen.row(id);
  if (row == nullptr) fail(Errc::input, "there is no trial {}", id);
  return *row;
}

void put_curve(JsonWriter& out, const Curve& curve, double started) {
  out.begin_object().key("step").begin_array();
  for (const auto& point : curve.points()) out.value(point.step);
  out.end_array().key("time").begin_array();
  for (const auto& point : curve.points()) out.value(started + static_cast<double>(point.time));
  out.end_array().key("value").begin_array();
  for (const auto& point : curve.points()) out.value(point.value);
  out.end_array().end_object();
}

void put_attempts(JsonWriter& out, const ExperimentView& seen, TrialId id) {
  out.key("attempts").begin_array();
  std::vector<std::size_t> own;
  for (std::size_t i = 0; i < seen.pieces().size(); ++i)
    if (seen.pieces()[i].trial == id) own.push_back(i);
  for (std::size_t i = own.size() > 1000 ? own.size() - 1000 : 0; i < own.size(); ++i) {
    const auto& piece = seen.pieces()[own[i]];
    const auto host = view::shortened(seen.host_name(seen.lanes()[piece.lane].host), 200);
    out.begin_object().member("attempt", piece.attempt).member("host", host);
    out.key("workers").begin_array().value(host).end_array();
    out.member("start", piece.start).key("end");
    piece.end == view::Piece::End::running ? out.value(nullptr) : out.value(piece.stop);
    out.member("from_step", piece.from_step).member("to_step", piece.to_step);
    out.member("end_kind", view::to_string(piece.end)).key("cause");
    const auto cause = seen.cause(own[i]);
    cause.empty() ? out.value(nullptr) : out.value(cause);
    out.end_object();
  }
  out.end_array();
}

}  // namespace

std::string trial_answer(Followed& followed, const Query& query) {
  const TrialId id = trial_number(query);
  const auto points = static_cast<std::size_t>(query.whole("points", 500, 16, 2000));

  // If the sampled curve lacks points, they are read from the Journal, without locking the view.
  struct Whole {
    bool needed = false;
    std::int64_t first = 0, last = 0;
    double started = 0;
    bool waits = false;
  };
  const auto whole = followed.look([&](const ExperimentView& seen) {
    const TrialRow& row = row_of(seen, id);
    Whole found;
    const auto result = seen.results().trial(id);
    for (const auto& curve : row.curves)
      found.needed |= curve.points().size() < std::min<std::size_t>(curve.seen(), points);
    found.first = result.first_record;
    found.last = std::min(result.last_record, seen.version());
    found.started = row.started;
    found.waits = (row.state == TrialState::pending || row.state == TrialState::paused) &&
                  (seen.status.state == "running" || seen.status.state == "paused");
    return found;
  });
  std::map<std::string, Curve> read;
  if (whole.needed) {
    JournalReader reader(followed.folder);
    reader.history(
        id,
        [&](const Record& record) {
          const auto& report = std::get<record::TrialReported>(record.what);
          for (const auto& [name, value] : report.metrics)
            read.try_emplace(name, 0U).first->second.add(
                {report.step, static_cast<float>(record.time - whole.started), value}, points);
        },
        whole.first, whole.last);
  }
  std::map<TrialId, std::string> reasons;
  if (whole.waits) reasons = ask_why(followed.folder, {id}, ask_patience).reasons;
  struct stat status{};
  const bool has_log = static_cast<bool>(open_log(followed.folder, id, status));

  return followed.look([&](const ExperimentView& seen) {
    const TrialRow& row = row_of(seen, id);
    const auto& names = seen.results().metrics();
    JsonWriter out;
    put_row(out, seen, row, true);
    put_version(out, seen);
    out.key("metrics").begin_object();
    for (const auto& curve : row.curves) {
      const auto& name = names[curve.metric()];
      out.key(name).begin_object().member("last", curve.points().back().value);
      const auto objective = seen.objective(name);
      const auto best = objective ? seen.results().best_report(id, *objective) : std::nullopt;
      out.key("best");
      best ? out.value(best->value) : out.value(nullptr);
      out.key("best_step");
      best ? out.value(best->step) : out.value(nullptr);
      out.end_object();
    }
    out.end_object().key("curves").begin_object();
    for (const auto& curve : row.curves) {
      if (out.size() > view::max_answer * 7 / 10) break;
      const auto found = read.find(names[curve.metric()]);
      out.key(names[curve.metric()]);
      put_curve(out, found == read.end() ? curve : found->second, row.started);
    }
    out.end_object();
    put_attempts(out, seen, id);
    const auto result = seen.results().trial(id);
    out.key("checkpoints").begin_array();
    for (std::size_t i = result.checkpoints.size() > 500 ? result.checkpoints.size() - 500 : 0;
         i < result.checkpoints.size(); ++i) {
      const auto& info = result.checkpoints[i];
      out.begin_object().member("step", info.steps).member("bytes", info.bytes);
      out.member("path",
                 (followed.folder / "trials" / std::to_string(info.trial) / "checkpoints" / info.name).string());
      out.member("state", "kept").member("why", "").end_object();
    }
    out.end_array().key("lineage").begin_array();
    for (const auto& one : seen.takeovers()) {
      if (one.trial != id && one.donor != id) continue;
      if (out.size() > view::max_answer * 9 / 10) break;
      out.begin_object().member("trial", one.trial).member("donor", one.donor).member("step", one.step);
      out.member("time", one.time).key("changes").raw(one.changes).end_object();
    }
    out.end_array().member("log_bytes", has_log ? static_cast<std::int64_t>(status.st_size) : 0);
    out.key("waits_for");
    reasons.empty() ? out.value(nullptr) : out.value(view::shortened(reasons.begin()->second));
    out.member("created", row.created);
    view::put_number(out, "started", row.started);
    out.end_object();
    return out.take();
  });
}

std::string log_answer(Followed& followed, const Query& query) {
  constexpr std::int64_t usual = 65536, most = 262144;
  const TrialId id = trial_number(query);
  followed.look([&](const ExperimentView& seen) { static_cast<void>(row_of(seen, id)); });
  struct stat status{};
  const auto file = open_log(followed.folder, id, status);
  const std::int64_t size = file ? status.st_size : 0;
  const std::int64_t asked = query.whole("from", -usual, std::numeric_limits<std::int64_t>::min() / 2,
                                         std::numeric_limits<std::int64_t>::max() / 2);
  std::int64_t from = std::clamp<std::int64_t>(asked < 0 ? size + asked : asked, 0, size);
  std::string text(static_cast<std::size_t>(std::min(most, size - from)), '\0');
  std::size_t filled = 0;
  while (file && filled < text.size()) {
    const auto got = ::pread(file.get(), text.data() + filled, text.size() - filled, from + static_cast<off_t>(filled));
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  // Leave out characters that are cut at the start or the end; the next part begins with the one at the end.
  if (asked < 0)
    while (!text.empty() && from > 0 && (static_cast<unsigned char>(text.front()) & 0xC0U) == 0x80U) {
      text.erase(0, 1);
      ++from;
    }
  if (text.size() >= 4) {
    const auto cut = detail::utf8_cut(text, text.size() - 1);
    const auto last = std::string_view(text).substr(cut);
    const auto lead = static_cast<unsigned char>(last.front());
    const std::size_t needed = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (last.size() < needed) text.resize(cut);
  }
  JsonWriter out;
  out.begin_object().member("from", from).member("to", from + static_cast<std::int64_t>(text.size()));
  out.member("size", size).member("text", text).end_object();
  return out.take();
}

}  // namespace hypertune::inline v0::dashboard
