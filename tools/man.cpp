#include "man.hpp"

#include "command_words.hpp"
#include "commands.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::command {

namespace {

// Escapes a text within a line of roff, in ASCII.
std::string roff(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) {
      ++i;
      if (c == '\\')
        out += "\\e";
      else if (c == '-')
        out += "\\-";
      else if (c == '\'')
        out += "\\(aq";
      else if (c == '`')
        out += "\\(ga";
      else if (c >= 0x20)
        out += static_cast<char>(c);
      continue;
    }
    const std::size_t size = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    std::uint32_t code = c & (0xFFU >> (size + 1));
    for (std::size_t k = 1; k < size && i + k < text.size(); ++k)
      code = (code << 6U) | (static_cast<unsigned char>(text[i + k]) & 0x3FU);
    out += fmt::format("\\[u{:04X}]", code);
    i += size;
  }
  if (out.starts_with('.')) out.insert(0, "\\&");
  return out;
}

// A text on a line of its own, or several lines.
std::string paragraph(std::string_view text) { return text.empty() ? "" : roff(text) + "\n"; }

std::string entry(const CommandWord& word) {
  std::string head;
  for (const auto& name : word.names) head += (head.empty() ? "" : ", ") + ("\\fB" + roff(name) + "\\fR");
  if (!word.value.empty()) head += " \\fI" + roff(word.value) + "\\fR";
  std::string values;
  for (const auto& value : word.values) values += (values.empty() ? "" : ", ") + value;
  std::string text = word.text;
  if (!values.empty() && text.find(word.values[0]) == std::string::npos)
    text += (text.empty() ? "one of " : "; one of ") + values;
  return ".TP\n" + head + "\n" + (text.empty() ? "\\&\n" : paragraph(text));
}

constexpr std::pair<int, const char*> exit_codes[] = {
    {exit_done, "done"},
    {exit_failed, "the experiment failed, or the system refused"},
    {exit_usage, "bad usage or bad input: nothing was begun, or what was asked was not done"},
    {exit_unanswered, "the driver of an experiment has not answered a request in time; it may still be done"},
    {exit_interrupted, "interrupted, with everything saved"}};

constexpr std::pair<const char*, const char*> files[] = {
    {"runs/NAME", "the folder of an experiment: its record (experiment.db), trials, checkpoints and the best result"},
    {"SHARE/hypertune/schema", "JSON Schema of the YAML files, for editors; hypertune schema prints them"}};

}  // namespace

std::string man_page(const CLI::App& app) {
  std::string out = fmt::format(".TH HYPERTUNE 1 \"\" \"hypertune {}\" \"User Commands\"\n", HYPERTUNE_VERSION_TEXT);
  out += ".SH NAME\nhypertune \\- hyperparameter tuning for any program\n";
  out += ".SH SYNOPSIS\n.B hypertune\n.I COMMAND\n.RI [ ARGUMENTS ]\n.br\n.B hypertune\n.I COMMAND\n.B \\-\\-help\n";
  out += ".SH DESCRIPTION\n" + paragraph(app.get_description());
  out += ".PP\n" + paragraph("A sweep is a YAML file that says what to run, what may vary and what is tuned.");
  out += paragraph("hypertune init writes one for a command, hypertune check looks at it, hypertune run runs it.");
  std::string group;
  for (const auto& command : commands_of(app)) {
    if (std::exchange(group, command.group) != command.group) out += ".SH \"COMMANDS: " + roff(group) + "\"\n";
    out += ".SS \"" + roff(synopsis_of(command)) + "\"\n" + paragraph(command.text);
    for (const auto& word : command.words)
      if (word.names.back() != "--help" && !(word.argument && word.text.empty())) out += entry(word);
  }
  out += ".SH EXIT STATUS\n";
  for (const auto& [code, text] : exit_codes) out += fmt::format(".TP\n.B {}\n", code) + paragraph(text);
  out += ".SH FILES\n";
  for (const auto& [file, text] : files) out += ".TP\n.I " + roff(file) + "\n" + paragraph(text);
  return out;
}

}  // namespace hypertune::inline v0::command
