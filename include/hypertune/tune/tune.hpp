// tune(): the blocking way to run an experiment.
#pragma once

#include <hypertune/space/space.hpp>
#include <hypertune/trial/trainable.hpp>
#include <hypertune/tune/tuner.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace hypertune {

namespace detail {

template <class Config>
std::function<Config(const Point&)> decoder(const Space<Config>& space) {
  return [space](const Point& point) { return space.config(point); };
}

inline std::string first_metric(const Options& options) { return objectives_of(options).front().metric; }

}  // namespace detail

/// Runs an experiment: `train` is a coroutine (`Training train(Config, Context&)`) or a function that returns the
/// metric; see Options for the rest. Blocks until it has ended; see Tuner::run() for what it throws.
template <class Config, class F>
Results tune(const Space<Config>& space, F train, Options options) {
  auto program = make_program<Config>(detail::decoder(space), std::move(train), detail::first_metric(options));
  return Tuner(space.search_space(), std::move(program), std::move(options)).run();
}

/// The same for a trial that is a class: `tune<Trainer>(space, options)`.
template <class Trainer, class Config>
Results tune(const Space<Config>& space, Options options) {
  auto program = make_class_program<Config, Trainer>(detail::decoder(space), detail::first_metric(options));
  return Tuner(space.search_space(), std::move(program), std::move(options)).run();
}

/// The same for a Program made elsewhere (an external command, a user's own).
inline Results tune(const SearchSpace& space, std::shared_ptr<const Program> program, Options options) {
  return Tuner(space, std::move(program), std::move(options)).run();
}

}  // namespace hypertune
