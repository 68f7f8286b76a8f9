// The command line of `hypertune`.
#include "authoring.hpp"
#include "cluster.hpp"
#include "command_lines.hpp"
#include "commands.hpp"
#include "documents.hpp"
#include "kubernetes_driver.hpp"
#include "remote_trials.hpp"

#include <hypertune/detail/nearest.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/error.hpp>
#include <hypertune/process/standard_descriptors.hpp>
#include <hypertune/ssh/runtime.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace ht = hypertune;
namespace command = hypertune::command;

namespace {

int exit_code(ht::Errc code) {
  switch (code) {
    case ht::Errc::usage:
    case ht::Errc::space:
    case ht::Errc::input:
    case ht::Errc::corrupt:
    case ht::Errc::resources:
    case ht::Errc::busy: return command::exit_usage;
    default: return command::exit_failed;
  }
}

// Prints one line. Control characters are escaped, because it may quote any text of a file.
void complain(const char* what) { ht::detail::say("hypertune: " + ht::detail::terminal::printable(what)); }

int run_in_turn(const std::function<int()>& work) {
  for (;;) try {
      return work();
    } catch (const ht::Error& e) {
      if (e.code() != ht::Errc::busy || !command::wait_as_driver(e)) throw;
    }
}

bool nobody_reads() {
  pollfd out{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

// The exit code of a command whose output was written, or whose reader has gone away.
int written(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  if (nobody_reads()) return code;
  complain("the results could not be written to the standard output: is the disk full?");
  return command::exit_failed;
}

// An error for an unknown command that names it, which CLI11's own error does not.
std::optional<std::string> wrong_command(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); }))
    names.push_back(command->get_name());
  if (argc < 2) return fmt::format("name a command: {} (hypertune --help says what they do)", fmt::join(names, ", "));
  const std::string_view word = argv[1];
  const auto called = app.get_subcommands([&](const CLI::App* c) { return c->get_name() == word; });
  if (word.starts_with('-') || !called.empty()) return std::nullopt;
  if (word == "resume")
    return "there is no command 'resume': hypertune run SWEEP.yaml --resume goes on with its experiment";
  const auto meant = ht::detail::nearest(word, names);
  return fmt::format("there is no command '{}'{}", word,
                     meant.empty() ? fmt::format("; there are {}", fmt::join(names, ", "))
                                   : fmt::format(": did you mean '{}'?", meant));
}

// The same for an option.
std::optional<std::string> wrong_option(const CLI::App& app) {
  for (const auto* command : app.get_subcommands()) {
    std::vector<std::string> names;
    for (const auto* option : command->get_options())
      for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& rest : command->remaining()) {
      const std::string word = rest.substr(0, rest.find('='));
      if (!word.starts_with('-'))
        return fmt::format("'hypertune {}' takes no further argument '{}'", command->get_name(), rest);
      const auto* own = command->get_option_no_throw("ARGS");
      return fmt::format("'hypertune {}' has no option '{}'{}{}", command->get_name(), word,
                         ht::detail::suggestion(word, names),
                         own == nullptr ? "" : "; options of the command that it runs stand after --");
    }
  }
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  ht::process::open_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // `hypertune results DIR | head` must end quietly
  if (const auto code = ht::remote::run_agent_if_asked(argc, argv, command::program_from_description)) return *code;
  CLI::App app{"Hyperparameter tuning for any program: sweeps, early stopping, results."};
  app.set_version_flag("--version", HYPERTUNE_VERSION_TEXT);
  app.require_subcommand(1);
  std::function<int()> chosen;

  // The commands under the headings of the help, in their order there.
  const auto group = [&](const char* name, auto... add) {
    const auto before = app.get_subcommands({}).size();
    (add(app, chosen), ...);
    const auto all = app.get_subcommands({});
    for (std::size_t i = before; i < all.size(); ++i)
      if (!all[i]->get_group().empty()) all[i]->group(name);
  };
  group("Run", command::add_run_command);
  group("Look", command::add_status_command, command::add_result_commands, command::add_document_commands,
        command::add_exchange_commands);
  group("Run", command::add_study_command, command::add_serve_command);
  group("Steer", command::add_control_commands);
  group("Machines", command::add_cluster_commands);
  group("Write and check", command::add_authoring_commands);
  if (const auto wrong = wrong_command(app, argc, argv)) {
    complain(wrong->c_str());
    return command::exit_usage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError& e) {
    const auto wrong = wrong_option(app);
    complain(wrong ? wrong->c_str() : e.what());
    return command::exit_usage;
  } catch (const CLI::Success& e) {  // --help
    app.exit(e);
    return written(command::exit_done);
  } catch (const CLI::ParseError& e) {
    const auto parsed = app.get_subcommands();
    const std::string name = parsed.empty() ? "hypertune" : "hypertune " + parsed.front()->get_name();
    complain(fmt::format("'{}': {} ({} --help says more)", name, e.what(), name).c_str());
    return command::exit_usage;
  }
  try {
    const int code = written(run_in_turn(chosen));
    if (code == command::exit_failed || code == command::exit_usage) command::end_as_driver();
    return code;
  } catch (const ht::Error& e) {
    complain(e.what());
    // Other errors may be temporary (a lock of another process, a server that does not answer): the driver may be
    // started again.
    if (!ht::may_pass(e.code())) command::end_as_driver();
    return exit_code(e.code());
  } catch (const std::system_error& e) {
    if (nobody_reads()) return command::exit_done;  // a write to the standard output failed
    complain(e.what());
    return command::exit_failed;
  } catch (const std::exception& e) {
    complain(e.what());
    return command::exit_failed;
  }
}
