// Sweeps that differ in their executor, for the tests of its keys.
#pragma once

#include "support/test.hpp"
#include "support/yaml_corpus.hpp"

#include <hypertune/config/sweep.hpp>
#include <hypertune/error.hpp>

#include <string>

namespace executor_sweeps {

/// A sweep with `more` at its end.
inline hypertune::Sweep read(const std::string& more) {
  const std::string text =
      "trial: {command: [./train]}\nspace: {x: {uniform: [0, 1]}}\nmetric: loss\nmode: min\nsamples: 3\n" + more;
  return support::kept("sweep", text,
                       [&] { return hypertune::sweep_from_yaml(hypertune::load_yaml_text(text, "s.yaml"), false); });
}

/// What is wrong with it; "no error" if nothing is.
inline std::string complaint(const std::string& more) {
  try {
    read(more);
  } catch (const hypertune::Error& error) {
    CHECK(error.code() == hypertune::Errc::input);
    return error.what();
  }
  return "no error";
}

}  // namespace executor_sweeps
