// import: imports experiments of Optuna and Ray Tune.
#include "commands.hpp"

#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/record/import.hpp>

#include <fmt/format.h>

namespace hypertune::inline v0::command {

int import_from(const ImportArguments& arguments) {
  ImportOptions options{.study = arguments.study, .metric = arguments.metric, .mode = {}};
  if (!arguments.mode.empty()) options.mode = arguments.mode == "max" ? Mode::maximize : Mode::minimize;
  const Imported imported = import_experiment(arguments.source, arguments.directory, options);
  const auto folder = detail::shell_quote(arguments.directory);
  fmt::print("{} trial{} of {} {} in {}", imported.trials, imported.trials == 1 ? "" : "s",
             detail::terminal::printable(imported.what), imported.trials == 1 ? "is" : "are", folder);
  if (imported.left_out > 0)
    fmt::print("; {} that had not ended {} left out", imported.left_out, imported.left_out == 1 ? "is" : "are");
  if (imported.damaged > 0)
    fmt::print("; {} that cannot be read {} left out ({})", imported.damaged, imported.damaged == 1 ? "is" : "are",
               detail::terminal::printable(imported.damage));
  if (imported.earlier > 0)
    fmt::print("; {} of an earlier run in this folder {} left out", imported.earlier,
               imported.earlier == 1 ? "is" : "are");
  fmt::print("\nto search on from them: --set search.warm_start=[{}]\n", folder);
  return exit_done;
}

}  // namespace hypertune::inline v0::command
