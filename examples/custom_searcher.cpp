// A user-defined search algorithm: a hill climber that searches ever closer around the best configuration so far. It
// works with every executor and scheduler, and after a restart, because its state depends only on what it observes.
#include <hypertune/hypertune.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace ht = hypertune;

struct Climber {
  int random_first = 20;  // trials before it begins to climb
  double reach = 0.3;     // the initial search distance, as a fraction of each dimension

  std::optional<ht::SearchSpace> space{};
  std::vector<double> best{};  // in the unit cube; inactive dimensions are NaN
  double best_loss = ht::worst_loss;
  int ended = 0;

  void prepare(const ht::SearchSpace& s, const ht::SearchContext&) { space = s; }

  // Draws from ask.rng alone and changes no state: after a restart the same Ask gives the same suggestion.
  ht::Suggestion suggest(const ht::Ask& ask) {
    const double step = reach * std::pow(0.97, ended);
    for (int tries = 0; ended >= random_first && !best.empty() && tries < 100; ++tries) {
      std::vector<double> unit = best;
      for (double& u : unit) {
        const double around = ht::is_active(u) ? u : 0.5;
        u = std::clamp(around + step * (2 * ht::uniform01(ask.rng) - 1), 0.0, 1.0);
      }
      ht::Point point = space->from_unit(unit, ask.rng);
      if (space->feasible(point)) return point;
    }
    return space->sample(ask.rng);
  }

  void observe(const ht::Observation& o) {
    if (o.kind != ht::Observation::Kind::ended) return;
    ++ended;
    if (o.state == ht::TrialState::failed || o.loss() >= best_loss) return;
    best_loss = o.loss();
    best = space->to_unit(o.point);
  }

  std::string name() const { return "climber"; }
};

struct Config {
  double x = 0, y = 0;
};

double banana(const Config& c) { return std::pow(1 - c.x, 2) + 100 * std::pow(c.y - c.x * c.x, 2); }

int main() {
  const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-2, 2)),  //
                                       ht::dim("y", &Config::y, ht::uniform(-1, 3)));
  const auto results = ht::tune(space, banana, {.name = "climber", .samples = 200, .search = Climber{}, .seed = 1});
  fmt::print("{}\n", results.best());
}
