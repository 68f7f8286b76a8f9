// Trials that do as their point says, with a state that tells whether a step was lost or done twice.
#pragma once

#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/context.hpp>
#include <hypertune/trial/report.hpp>
#include <hypertune/trial/trainable.hpp>
#include <hypertune/trial/training.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::test {

/// What a trial does. It travels as a point, so that it reaches trials in other processes too.
struct Plan {
  static constexpr int never = -1, when_decoded = -2, when_made = -3;

  int steps = 3;               ///< the trial ends by itself after so many
  int throw_at = never;        ///< a step, or one of the places above
  int throwing_attempts = 99;  ///< attempts from this number on do not throw
  int strange_error = 0;       ///< 1: throws what is no std::exception, 2: one without a message
  int nan_at = never;          ///< the step whose value is NaN (and "inf" infinite)
  int save_throws_at = never;  ///< steps done at which saving throws
  int first_step = 0;          ///< the first report says that it is of this step
  int linger_at = never;       ///< the step that lasts until it is asked to stop
  bool savable = true;         ///< coroutines only
  int seed = 1;
  bool alone = false;  ///< of several workers: it does not join them

  Point point() const {
    const auto number = [](int value) { return static_cast<double>(value); };
    return {number(steps),       number(throw_at),       number(throwing_attempts), number(strange_error),
            number(nan_at),      number(save_throws_at), number(first_step),        number(linger_at),
            savable ? 1.0 : 0.0, number(seed),           alone ? 1.0 : 0.0};
  }
  static Plan of(const Point& point) {
    const auto number = [&](std::size_t i) { return static_cast<int>(point.at(i)); };
    Plan plan{.steps = number(0),
              .throw_at = number(1),
              .throwing_attempts = number(2),
              .strange_error = number(3),
              .nan_at = number(4),
              .save_throws_at = number(5),
              .first_step = number(6),
              .linger_at = number(7),
              .savable = number(8) != 0,
              .seed = number(9),
              .alone = number(10) != 0};
    if (plan.throw_at == when_decoded) throw std::runtime_error("boom when decoded");
    return plan;
  }
  bool ordinary() const { return throw_at == never && linger_at == never; }
};

/// Each step changes the state in a way that depends on the step and on all before it; whole and below 2^31.
inline std::int64_t next_state(std::int64_t state, int step) {
  return (state * 1'103'515'245 + 12'345 + step) % 2'147'483'648;
}
/// The state of a trial that has done `steps` steps, each once and in order.
inline std::int64_t expected_state(const Plan& plan, int steps) {
  std::int64_t state = plan.seed;
  for (int step = plan.first_step; step < steps; ++step) state = next_state(state, step);
  return state;
}

/// Counts the runs of this process that hold something.
struct Alive {
  Alive() { ++count(); }
  Alive(const Alive&) { ++count(); }
  Alive& operator=(const Alive&) = default;
  ~Alive() { --count(); }
  static std::atomic<int>& count() {
    static std::atomic<int> number{0};
    return number;
  }
};

namespace conformance {

/// The state of a trial, whatever form it is written in.
struct PlannedState {
  Plan plan;
  int step = 0;
  std::int64_t state = 0;
  Alive alive = {};

  explicit PlannedState(Plan p) : plan(p), state(p.seed) {}

  void maybe_throw(int place, Attempt attempt) const {
    if (plan.throw_at != place || static_cast<int>(attempt) >= plan.throwing_attempts) return;
    if (plan.strange_error == 1) throw 42;
    throw std::runtime_error(plan.strange_error == 2 ? std::string() : fmt::format("boom at {}", place));
  }
  bool over() const { return step >= std::max(plan.steps, plan.first_step); }
  Report train(Context* context, Attempt attempt) {
    const int before = step;
    follow_group(context);
    if (veteran_ && step > before) {  // another one has done that step: it is only to be reported
      context->go_on_from(step - 1);
      return report_of(step - 1);
    }
    fresh_ = false;
    veteran_ = true;
    const bool jump = step < plan.first_step;
    if (jump) step = plan.first_step;
    maybe_throw(step, attempt);
    if (plan.linger_at == step) linger(*context);
    state = next_state(state, step);
    Report made = report_of(step);
    ++step;
    return jump ? std::move(made).at(step - 1) : std::move(made);
  }
  void save(CheckpointWriter& out) const {
    std::ofstream file(out.file("state"));
    file << step << ' ' << state;
    file.close();
    if (plan.save_throws_at == step) throw std::runtime_error("boom while saving");
  }
  void load(const Checkpoint& in) {
    std::ifstream file(in.file("state"));
    if (!(file >> step >> state)) throw std::runtime_error("the checkpoint cannot be read");
  }

 private:
  bool veteran_ = false;  // it has trained a step
  bool fresh_ = false;    // it has joined, and not trained since

  Report report_of(int at) const {
    const bool odd = plan.nan_at == at;
    return report("value", odd ? std::numeric_limits<double>::quiet_NaN() : 1.0 / (1 + at), "inf",
                  odd ? -std::numeric_limits<double>::infinity() : 0.0, "state", static_cast<double>(state));
  }
  // Of several workers the furthest one says where all go on. They leave their generation at one step, as each says
  // before a step whether it has been asked to.
  void follow_group(Context* context) {
    if (context == nullptr || plan.alone) return;
    Group& group = context->group();
    bool leave = !group.joined();
    if (!leave && fresh_) return;
    for (;;) {
      if (leave) group.join();
      try {
        if (!leave) {
          bool any = false;
          for (const auto& vote : exchange(group, fmt::format("vote/{}", step), group.change_pending() ? "1" : "0"))
            any = any || vote == "1";
          if (!any) return;
          leave = true;
          continue;
        }
        for (const auto& where : exchange(group, "at", fmt::format("{} {}", step, state))) {
          std::istringstream in(where);
          int its_step = 0;
          std::int64_t its_state = 0;
          in >> its_step >> its_state;
          if (its_step > step) {
            step = its_step;
            state = its_state;
          }
        }
        context->go_on_from(step);
        fresh_ = true;
        return;
      } catch (const GroupError&) {
        if (!group.change_pending()) throw;
        leave = true;
      }
    }
  }
  // What each rank says.
  static std::vector<std::string> exchange(Group& group, const std::string& key, const std::string& mine) {
    const GroupPlace place = group.place();
    group.set(fmt::format("{}/{}", key, place.rank), mine);
    std::vector<std::string> all;
    for (int rank = 0; rank < place.size(); ++rank) {
      auto value = group.wait(fmt::format("{}/{}", key, rank), 60);
      if (!value) throw std::runtime_error("rank " + std::to_string(rank) + " says nothing");
      all.push_back(std::move(*value));
    }
    return all;
  }
  static void linger(const Context& context) {  // a user's long step that looks now and then whether to go on
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!context.stop_requested()) {
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error("nobody asked the long step to stop");
      std::this_thread::yield();
    }
  }
};

inline Training planned_training(Plan plan, Context& context) {
  PlannedState trial(plan);
  if (plan.savable)
    context.checkpoints([&trial](CheckpointWriter& out) { trial.save(out); },
                        [&trial](const Checkpoint& in) { trial.load(in); });
  trial.maybe_throw(Plan::when_made, context.attempt());
  while (!trial.over()) {
    Report made = trial.train(&context, context.attempt());
    co_yield std::move(made);
  }
}

class PlannedTrainer {
 public:
  PlannedTrainer(const Plan& plan, Context& context) : state_(plan), context_(&context), attempt_(context.attempt()) {
    state_.maybe_throw(Plan::when_made, attempt_);
  }
  std::optional<Report> step() {
    if (state_.over()) return std::nullopt;
    return state_.train(context_, attempt_);
  }
  void save(CheckpointWriter& out) const { state_.save(out); }
  void restore(const Checkpoint& in) { state_.load(in); }

 protected:
  PlannedState state_;
  Context* context_;
  Attempt attempt_;
};

/// Writes down what becomes of objects, in whatever process they are, where the environment names a file for it.
inline void note_object(char what) {
  if (const char* file = std::getenv("HYPERTUNE_TEST_OBJECTS"); file != nullptr && *file != '\0')
    std::ofstream(file, std::ios::app) << what;
}

class ReusableTrainer : public PlannedTrainer {
 public:
  ReusableTrainer(const Plan& plan, Context& context) : PlannedTrainer(plan, context) { note_object('+'); }
  ReusableTrainer(const ReusableTrainer&) = delete;
  ReusableTrainer& operator=(const ReusableTrainer&) = delete;
  ~ReusableTrainer() { note_object('-'); }
  bool reset(const Plan& plan, Context& context) {
    if (!plan.ordinary()) return false;
    state_ = PlannedState(plan);
    context_ = &context;
    attempt_ = context.attempt();
    note_object('r');
    return true;
  }
};

}  // namespace conformance

/// How the trial is written.
enum class Form { coroutine, object, reusable };

inline std::shared_ptr<const Program> planned_program(Form form) {
  switch (form) {
    case Form::coroutine: return make_program<Plan>(&Plan::of, &conformance::planned_training, "value");
    case Form::object: return make_class_program<Plan, conformance::PlannedTrainer>(&Plan::of, "value");
    case Form::reusable: return make_class_program<Plan, conformance::ReusableTrainer>(&Plan::of, "value");
  }
  return nullptr;
}

}  // namespace hypertune::inline v0::test
