#include "completion.hpp"

#include "command_words.hpp"

#include <hypertune/detail/shell_quote.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::command {

namespace {

using detail::shell_quote;

// ---- bash ----

constexpr std::string_view bash_frame = R"(# bash completion for hypertune, written by `hypertune completion bash`.
_hypertune() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= words= place= position=0 i
  COMPREPLY=()
  # --format=json comes as three words.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      -*) ;;
      *) command=${COMP_WORDS[i]}; break ;;
    esac
  done
  if [[ -z $command ]]; then
    words="@COMMANDS@ --help --version"
  else
    local options= taking= first=$((i + 1))
    case $command in
@CASES@      *) return ;;
    esac
    # Which of the arguments without a name this is.
    for ((i = first; i < COMP_CWORD; i++)); do
      case ${COMP_WORDS[i]} in
        =) ((i++)) ;;  # … and its value
        -*) [[ " $taking " == *" ${COMP_WORDS[i]} "* ]] && { ((i++)); [[ ${COMP_WORDS[i]} == = ]] && ((i++)); } ;;
        *) ((position++)) ;;
      esac
    done
    case $command:$prev in
@VALUES@      *)
        if [[ $cur == -* ]]; then
          words=$options
        else
          case $command:$position in
@PLACES@          esac
        fi ;;
    esac
  fi
  case $place in
    file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    folder) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur") ;;
  esac
}
complete -F _hypertune hypertune
)";

void replace(std::string& text, std::string_view mark, std::string_view by) {
  text.replace(text.find(mark), mark.size(), by);
}

std::string proposal(const CommandWord& word) {
  if (!word.values.empty()) return fmt::format("words=\"{}\"", fmt::join(word.values, " "));
  return word.place == Place::file ? "place=file" : word.place == Place::folder ? "place=folder" : ":";
}

std::string bash(const std::vector<CommandInfo>& commands) {
  std::vector<std::string> names;
  std::string cases, values, places;
  for (const auto& command : commands) {
    names.push_back(command.name);
    std::vector<std::string> options, taking;
    int position = 0;
    for (const auto& word : command.words) {
      if (word.argument) {
        places += fmt::format("            {}:{}) {} ;;\n", command.name, word.many ? "*" : fmt::to_string(position),
                              proposal(word));
        ++position;
        continue;
      }
      options.insert(options.end(), word.names.begin(), word.names.end());
      if (word.value.empty()) continue;
      taking.insert(taking.end(), word.names.begin(), word.names.end());
      std::vector<std::string> patterns;
      for (const auto& name : word.names) patterns.push_back(command.name + ":" + name);
      values += fmt::format("      {}) {} ;;\n", fmt::join(patterns, "|"), proposal(word));
    }
    cases += fmt::format("      {}) options=\"{}\" taking=\"{}\" ;;\n", command.name, fmt::join(options, " "),
                         fmt::join(taking, " "));
  }
  std::string script(bash_frame);
  replace(script, "@COMMANDS@", fmt::format("{}", fmt::join(names, " ")));
  replace(script, "@CASES@", cases);
  replace(script, "@VALUES@", values);
  replace(script, "@PLACES@", places);
  return script;
}

// ---- zsh ----

// Escapes brackets and colons, which are special in an argument of _arguments.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const CommandWord& word) {
  if (!word.values.empty()) return fmt::format("({})", fmt::join(word.values, " "));
  return word.place == Place::file ? "_files" : word.place == Place::folder ? "_files -/" : " ";
}

std::string zsh(const std::vector<CommandInfo>& commands) {
  std::string out =
      "#compdef hypertune\n# zsh completion for hypertune, written by `hypertune completion zsh`.\n_hypertune() {\n"
      "  local curcontext=\"$curcontext\" state line\n  local -a commands\n"
      "  _arguments -C '--help[say what there is]' '--version[say which version this is]' '1: :->command' '*:: "
      ":->rest'\n"
      "  case $state in\n    command)\n      commands=(\n";
  for (const auto& command : commands)
    out += "        " + shell_quote(command.name + ":" + zsh_text(command.text)) + "\n";
  out += "      )\n      _describe -t commands 'hypertune command' commands ;;\n    rest)\n      case $words[1] in\n";
  for (const auto& command : commands) {
    out += fmt::format("        {})\n          _arguments", command.name);
    int position = 0;
    for (const auto& word : command.words) {
      if (word.argument) {
        ++position;
        const std::string place = word.many ? "*" : fmt::to_string(position);
        out += " \\\n            " +
               shell_quote(fmt::format("{}:{}:{}", place, zsh_text(word.names[0]), zsh_action(word)));
        continue;
      }
      for (const auto& name : word.names) {
        const bool joined = !word.value.empty() && name.starts_with("--");  // also --format=json
        std::string text = fmt::format("*{}{}[{}]", name, joined ? "=" : "", zsh_text(word.text));
        if (!word.value.empty()) text += fmt::format(":{}:{}", zsh_text(word.value), zsh_action(word));
        out += " \\\n            " + shell_quote(text);
      }
    }
    out += " ;;\n";
  }
  return out +
         "      esac ;;\n  esac\n}\nif [[ ${funcstack[1]} == _hypertune ]]; then\n  _hypertune \"$@\"\nelse\n"
         "  compdef _hypertune hypertune\nfi\n";
}

// ---- fish ----

std::string fish_quote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_place(const CommandWord& word) {
  if (!word.values.empty()) return " -x -a " + fish_quote(fmt::format("{}", fmt::join(word.values, " ")));
  if (word.place == Place::file) return " -r -F";
  return word.place == Place::folder ? " -x -a '(__fish_complete_directories)'" : " -x";
}

std::string fish(const std::vector<CommandInfo>& commands) {
  std::string out =
      "# fish completion for hypertune, written by `hypertune completion fish`.\ncomplete -c hypertune -f\n"
      "complete -c hypertune -n __fish_use_subcommand -l version -d 'say which version this is'\n";
  for (const auto& command : commands) {
    out += fmt::format("complete -c hypertune -n __fish_use_subcommand -a {} -d {}\n", command.name,
                       fish_quote(command.text));
    const std::string here = fmt::format("complete -c hypertune -n '__fish_seen_subcommand_from {}'", command.name);
    for (const auto& word : command.words) {
      if (word.argument) {
        if (!word.values.empty())
          out += here + " -a " + fish_quote(fmt::format("{}", fmt::join(word.values, " "))) + "\n";
        else if (word.place == Place::file)
          out += here + " -F\n";
        else if (word.place == Place::folder)
          out += here + " -a '(__fish_complete_directories)'\n";
        continue;
      }
      out += here;
      for (const auto& name : word.names)
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!word.value.empty()) out += fish_place(word);
      out += (word.text.empty() ? "" : " -d " + fish_quote(word.text)) + "\n";
    }
  }
  return out;
}

}  // namespace

std::string completion_of(const CLI::App& app, const std::string& shell) {
  const auto commands = commands_of(app);
  return shell == "bash" ? bash(commands) : shell == "zsh" ? zsh(commands) : fish(commands);
}

}  // namespace hypertune::inline v0::command
