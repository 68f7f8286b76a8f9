#include "commands.hpp"
#include "serve.hpp"
#include "shell_words.hpp"
#include "sweep_file.hpp"
#include "terminal_text.hpp"
#include "trackers.hpp"

#include <hypertune/detail/say.hpp>
#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/serve/study_protocol.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

namespace hypertune::inline v0::command {

int study(const StudyArguments& arguments) {
  Sweep sweep = load_sweep(arguments.file, arguments.set, true);
  add_trackers(sweep);
  if (!arguments.output.empty()) sweep.options.output = arguments.output;
  sweep.options.resume = arguments.resume;
  ErasedStudy study(sweep.space, sweep.options);
  const auto answer = [&](std::string_view method, std::string_view target, std::string_view body) {
    return answer_study(study, method, target, body);
  };
  const auto computes = [](std::string_view, std::string_view target) { return target == "/ask"; };
  study.on_leave([] { ::kill(::getpid(), SIGTERM); });  // ends serve()
  serve(answer, computes, arguments.port, [](const std::string& address) {
    fmt::print("{}\n", address);
    std::fflush(stdout);
  });
  study.require_sound();
  const auto directory = study.directory().string();
  std::vector<std::string> words{"hypertune study " + detail::shell_quote(arguments.file), "--resume",
                                 "--output " + detail::shell_quote(directory)};
  for (const auto& assignment : arguments.set) words.push_back("--set " + detail::shell_quote(assignment));
  detail::say(with_command(fmt::format("hypertune: the study is in {}; go on with:", directory), words,
                           terminal_width(STDERR_FILENO)));
  return exit_done;
}

}  // namespace hypertune::inline v0::command
