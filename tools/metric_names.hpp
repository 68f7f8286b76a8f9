// Guesses from the names of metrics.
#pragma once

#include <hypertune/record/record.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::command {

/// The direction in which a metric is better, if its name shows it: "val_loss" contains the word "loss".
inline std::optional<Mode> mode_of_name(std::string_view name) {
  constexpr std::array<std::string_view, 15> smaller{"loss",   "error",   "err",  "mse",        "rmse",
                                                     "mae",    "latency", "cost", "perplexity", "ppl",
                                                     "regret", "wer",     "cer",  "nll",        "fid"};
  constexpr std::array<std::string_view, 14> larger{"accuracy",  "acc",    "auc",        "f1",        "reward",
                                                    "precision", "recall", "r2",         "score",     "bleu",
                                                    "map",       "dice",   "throughput", "likelihood"};
  std::optional<Mode> mode;
  for (std::size_t begin = 0; begin < name.size();) {
    const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    std::size_t end = begin;
    std::string word;
    for (; end < name.size() && is_part(name[end]); ++end)
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(name[end])));
    begin = end + 1;
    // The last such word decides: an "accuracy_error" is an error.
    if (std::find(smaller.begin(), smaller.end(), word) != smaller.end()) mode = Mode::minimize;
    if (std::find(larger.begin(), larger.end(), word) != larger.end()) mode = Mode::maximize;
  }
  return mode;
}

}  // namespace hypertune::inline v0::command
