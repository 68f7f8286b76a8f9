// tune(): the blocking way to run an experiment.
#pragma once

#include <hypertune/record/results.hpp>
#include <hypertune/space/space.hpp>
#include <hypertune/trial/trainable.hpp>
#include <hypertune/tune/detail/resumption.hpp>
#include <hypertune/tune/options.hpp>
#include <hypertune/tune/tuner.hpp>

#include <concepts>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace hypertune::inline v0 {

namespace detail {

template <class Config>
std::function<Config(const Point&)> decoder(const Space<Config>& space) {
  return [space](const Point& point) { return space.config(point); };
}

/// Appears in the compiler's list of candidates: compilers do not say which designator of a braced list did not match.
class write_ht_Options_before_the_brace_to_see_which_option_is_wrong {
  struct Nobody {};
  explicit write_ht_Options_before_the_brace_to_see_which_option_is_wrong(Nobody, Nobody);
};

std::string first_metric(const Options& options);

}  // namespace detail

/// The options with which tune() goes on with the experiment in `directory`; see resume().
Options resumed_options(const std::filesystem::path& directory, const SearchSpace& space, Options options);

/// The Tuner that tune() would run with the same arguments, for callers of Tuner::run(stop_token) or
/// Tuner::async_run(token).
template <class Config, class F>
Tuner make_tuner(const Space<Config>& space, F train, Options options) {
  options = with_recorded(std::move(options), space.search_space());
  auto program = make_program<Config>(detail::decoder(space), std::move(train), detail::first_metric(options));
  return Tuner(space.search_space(), std::move(program), std::move(options));
}
template <class Trainer, class Config>
Tuner make_tuner(const Space<Config>& space, Options options) {
  options = with_recorded(std::move(options), space.search_space());
  auto program = make_class_program<Config, Trainer>(detail::decoder(space), detail::first_metric(options));
  return Tuner(space.search_space(), std::move(program), std::move(options));
}

/// Runs an experiment: `train` is a coroutine (`Training train(Config, Context&)`) or a function that returns the
/// metric; see Options for the rest. Blocks until the experiment has ended. Throws as Tuner::run() does. Failed trials
/// are not an error, even if all of them failed; but then Results::best() throws.
template <class Config, class F>
Results tune(const Space<Config>& space, F train, Options options) {
  return make_tuner(space, std::move(train), std::move(options)).run();
}

/// The same for a trial that is a class: `tune<Trainer>(space, options)`.
template <class Trainer, class Config>
Results tune(const Space<Config>& space, Options options) {
  return make_tuner<Trainer>(space, std::move(options)).run();
}

/// The same for a Program made elsewhere (an external command, a user's own).
Results tune(const SearchSpace& space, std::shared_ptr<const Program> program, Options options);

// The overloads below give a readable error for calls that match none of the above.

template <class Config, class F>
Results tune(const Space<Config>&, F, detail::write_ht_Options_before_the_brace_to_see_which_option_is_wrong) = delete;
template <class F, class Config>  // F first: in tune<Trainer>(space, options) the explicit argument is no Config
  requires(!ClassTrainable<F, Config>)
Results tune(const Space<Config>&, const F&) {
  static_assert(
      std::is_void_v<F>,
      "hypertune: tune() takes a space, a trial and options: tune(space, train, {.metric = \"loss\", .samples = "
      "100}), or tune<Trainer>(space, {…}) for a class");
  return {};
}
template <class F, class Config>
Results tune(const F&, const Space<Config>&, const Options&) {
  static_assert(std::is_void_v<F>, "hypertune: tune(): the space comes first: tune(space, train, {…})");
  return {};
}
template <class F>
  requires(!std::convertible_to<const F&, std::shared_ptr<const Program>>)
Results tune(const SearchSpace&, const F&, const Options&) {
  static_assert(
      std::is_void_v<F>,
      "hypertune: tune(): a SearchSpace has no struct for a trial to take: give the ht::space<Config>(…) that it "
      "is of, or a Program");
  return {};
}

/// Goes on with the experiment in `directory`: trials that ended stay ended, those that ran go on from their last
/// checkpoint. Settings that `options` does not give are taken from the record: name, metric and mode or objectives,
/// constraints, samples, seed. The search and schedule are not in the record in a form that can be rebuilt: give the
/// same ones as before (or others, which then learn from all recorded trials). docs/resume.md says what a change of
/// each option does.
template <class Config, class F>
Results resume(const std::filesystem::path& directory, const Space<Config>& space, F train, Options options = {}) {
  return tune(space, std::move(train), resumed_options(directory, space.search_space(), std::move(options)));
}
template <class Trainer, class Config>
Results resume(const std::filesystem::path& directory, const Space<Config>& space, Options options = {}) {
  return tune<Trainer>(space, resumed_options(directory, space.search_space(), std::move(options)));
}

}  // namespace hypertune::inline v0
