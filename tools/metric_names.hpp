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
  constexpr std::array<std::string_view, 22> smaller{
      "err",    "mse",        "rmse", "mae", "mape", "rmsle", "latency", "cost",  "ppl",      "wer",    "cer",
      "regret", "perplexity", "nll",  "fid", "eer",  "der",   "bpc",     "lpips", "deviance", "merror", "residual"};
  constexpr std::array<std::string_view, 31> larger{
      "accuracy", "acc",        "auc",        "f1",    "reward", "precision", "recall", "r2",  "score", "bleu", "map",
      "dice",     "throughput", "likelihood", "aucpr", "auroc",  "auprc",     "ndcg",   "mrr", "iou",   "miou", "psnr",
      "ssim",     "mcc",        "kappa",      "rouge", "fps",    "tps",       "qps",    "rps", "iops"};
  std::optional<Mode> mode;
  for (std::size_t begin = 0; begin < name.size();) {
    const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    std::size_t end = begin;
    std::string word;
    for (; end < name.size() && is_part(name[end]); ++end)
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(name[end])));
    begin = end + 1;
    // The last such word decides: an "accuracy_error" is an error.
    const bool loss = word.ends_with("loss") || word.ends_with("error") || word == "errors" || word == "losses";
    if (loss || std::find(smaller.begin(), smaller.end(), word) != smaller.end()) mode = Mode::minimize;
    if (std::find(larger.begin(), larger.end(), word) != larger.end()) mode = Mode::maximize;
  }
  return mode;
}

}  // namespace hypertune::inline v0::command
