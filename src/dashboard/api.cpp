#include "api.hpp"

#include "serving.hpp"

#include <hypertune/show/detail/view/answers.hpp>
#include <hypertune/tune/detail/requests/control.hpp>

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::dashboard {

using view::ExperimentView;
using view::JsonWriter;
using view::Query;

namespace {

struct NotFound : Error {
  explicit NotFound(const std::string& what) : Error(Errc::input, what) {}
};

std::string error_text(std::string_view what) {
  JsonWriter out;
  out.begin_object().member("error", view::shortened(what)).end_object();
  return out.take();
}

int status_of(Errc code) {
  switch (code) {
    case Errc::input:
    case Errc::usage: return 400;
    case Errc::busy: return 503;
    default: return 500;
  }
}

// For an experiment that could not be read at all. That is its state, and not an error of the request.
std::string unreadable_summary(const Followed& followed, std::string_view trouble) {
  JsonWriter out;
  out.begin_object().member("version", 0).member("name", followed.id).member("folder", followed.folder.string());
  out.member("state", "unreadable").member("error", view::shortened(trouble)).end_object();
  return out.take();
}

void put_best_of(JsonWriter& out, const ExperimentView& seen) {
  out.key("best");
  const auto best = seen.results().find_best();
  if (best && best->best)
    out.begin_object().member("trial", best->trial).member("value", best->best->value).end_object();
  else
    out.value(nullptr);
}

}  // namespace

std::string Api::body(std::string_view target) const {
  const Query query(target);
  if (query.path() == "/api/experiments") return experiments();
  const auto followed = experiments_.find(query.text("experiment"));
  if (followed == nullptr)
    throw NotFound(query.text("experiment").empty()
                       ? "name an experiment: ?experiment=ID, as /api/experiments lists them"
                       : fmt::format("there is no experiment '{}' here (any more)",
                                     view::shortened(query.text("experiment"), 200)));
  std::string body = of_experiment(*followed, query);
  if (body.empty()) throw NotFound(fmt::format("there is no '{}'", view::shortened(query.path(), 200)));
  return body;
}

HttpAnswer Api::answer(std::string_view target) const {
  try {
    return {200, body(target)};
  } catch (const NotFound& error) { return {404, error_text(error.what())}; } catch (const Error& error) {
    return {status_of(error.code()), error_text(error.what())};
  } catch (const std::exception& error) { return {500, error_text(error.what())}; }
}

std::string Api::experiments() const {
  JsonWriter out;
  out.begin_object().key("experiments").begin_array();
  for (const auto& one : experiments_.all()) {
    if (out.size() > view::max_answer * 9 / 10) break;
    out.begin_object().member("id", one->id);
    const auto brief = one->brief();
    if (brief.version == 0) {
      const std::string trouble = one->error_text();
      out.member("name", one->id).member("folder", one->folder.string());
      out.member("state", trouble.empty() ? "reading" : "unreadable").member("error", view::shortened(trouble));
      out.member("trials", 0).member("finished", 0).key("best").value(nullptr).end_object();
      continue;
    }
    one->look([&](const ExperimentView& seen) {
      const Results& results = seen.results();
      const auto& info = results.experiment();
      out.member("name", view::shortened(info.name, 500)).member("folder", one->folder.string());
      out.member("state", seen.status.state).member("why", view::shortened(seen.status.why, 500));
      out.member("trials", results.size()).member("finished", results.ended()).member("planned", info.planned);
      put_best_of(out, seen);
      const bool tuned = !info.objectives.empty();
      out.key("metric");
      tuned ? out.value(info.objectives.front().metric) : out.value(nullptr);
      out.key("mode");
      tuned ? out.value(hypertune::to_string(info.objectives.front().mode)) : out.value(nullptr);
      out.member("started", info.started).member("updated", info.updated);
      view::put_version(out, seen);
      out.end_object();
    });
  }
  out.end_array().end_object();
  return out.take();
}

std::string Api::changed(const std::string& id) const {
  const auto followed = experiments_.find(id);
  if (followed == nullptr) return {};
  try {
    return followed->look([&](const ExperimentView& seen) {
      JsonWriter out;
      out.begin_object().member("experiment", followed->id);
      view::put_version(out, seen);
      put_counts((out.key("counts"), out), seen);
      put_best_of(out, seen);
      out.member("state", seen.status.state).end_object();
      return out.take();
    });
  } catch (const Error&) {  // nothing has been read yet
    JsonWriter out;
    out.begin_object().member("experiment", followed->id).member("version", 0).member("state", "unreadable");
    out.end_object();
    return out.take();
  }
}

std::string Api::of_experiment(Followed& followed, const Query& query) const {
  const std::string& path = query.path();
  if (path == "/api/trial") return trial_answer(followed, query);
  if (path == "/api/log") return log_answer(followed, query);
  if (path == "/api/serving") return serving_answer(followed.folder);

  view::Surroundings around;
  if (cost_) {
    std::string cost = cost_(followed.folder);  // reads a file, so not while the view is locked
    around.cost = [cost = std::move(cost)] { return cost; };
  }
  if (path == "/api/now") {
    // Ask the driver without locking the view.
    std::vector<TrialId> waits;
    const bool driven = followed.look([&](const ExperimentView& seen) {
      for (const auto& row : seen.rows())
        if ((row.state == TrialState::pending || row.state == TrialState::paused) && waits.size() < 100)
          waits.push_back(row.id);
      return seen.status.state == "running" || seen.status.state == "paused";
    });
    WhyAnswer known;
    if (driven)
      known = ask_why(followed.folder, waits, ask_patience);
    else
      for (const TrialId id : waits) known.reasons.emplace(id, "no driver runs: go on with --resume");
    around.why_waiting = [&](const std::vector<TrialId>&, std::vector<std::pair<TrialId, std::string>>& reasons) {
      reasons.assign(known.reasons.begin(), known.reasons.end());
      return known.paused ? std::string(experiment_paused_text) : known.nothing_runs;
    };
    return followed.look([&](const ExperimentView& seen) { return view::now_answer(seen, around); });
  }
  if (path == "/api/summary") {
    try {
      return followed.look([&](const ExperimentView& seen) { return view::summary_answer(seen, around); });
    } catch (const Error&) {
      const std::string trouble = followed.error_text();
      if (followed.brief().version != 0 || trouble.empty()) throw;
      return unreadable_summary(followed, trouble);
    }
  }
  return followed.look([&](const ExperimentView& seen) -> std::string {
    if (path == "/api/trials") return view::trials_answer(seen, query);
    if (path == "/api/best") return view::best_answer(seen, query);
    if (path == "/api/curves") return view::curves_answer(seen, query);
    if (path == "/api/rungs") return view::rungs_answer(seen);
    if (path == "/api/points") return view::points_answer(seen, query);
    if (path == "/api/importance") return view::importance_answer(seen, query);
    if (path == "/api/edf") return view::edf_answer(seen, query);
    if (path == "/api/front") return view::front_answer(seen, query);
    if (path == "/api/timeline") return view::timeline_answer(seen, query);
    if (path == "/api/lineage") return view::lineage_answer(seen);
    if (path == "/api/config") return view::config_answer(seen, query);
    return {};
  });
}

}  // namespace hypertune::inline v0::dashboard
