#include "init_words.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::command {

namespace fs = std::filesystem;

namespace {

bool alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

// How the arguments of a program that starts another one, or a script, are read up to that.
struct Starter {
  std::string_view name;
  std::string_view valued;     // short options whose value is the next word, unless it follows at once
  std::string_view long_ones;  // others whose value is the next word, between spaces
  int operands = 0;            // words of its own before the other program
};
constexpr std::array<Starter, 22> starters{{
    {"env", "uC", "--unset --chdir"},
    {"nice", "n", "--adjustment"},
    {"nohup", "", ""},
    {"stdbuf", "ioe", "--input --output --error"},
    {"unbuffer", "", ""},
    {"timeout", "sk", "--signal --kill-after", 1},
    {"taskset", "", "", 1},
    {"ionice", "cnpPu", "--class --classdata"},
    {"chrt", "TPD", "", 1},
    {"setsid", "", ""},
    {"time", "fo", "--format --output"},
    {"numactl", "ilmpNCP", "--interleave --membind --cpunodebind --physcpubind --localalloc --preferred"},
    {"sudo", "uginCDhpRrTtU", "--user --group"},
    {"exec", "a", ""},
    {"command", "", ""},
    {"xvfb-run", "nsefwp", "--server-num --server-args"},
    {"mpirun", "ncHx", "-np -host --host -hostfile --hostfile -machinefile --bind-to --map-by -bind-to -map-by -ppn"},
    {"mpiexec", "ncHx", "-np -host --host -hostfile --hostfile -machinefile --bind-to --map-by -bind-to -map-by -ppn"},
    {"srun", "nNcptAJw", ""},
    {"valgrind", "", ""},
    {"strace", "eopsuPS", ""},
    {"systemd-run", "pEtGM", "--property --unit --slice --setenv"},
}};
// Programs that run a command in a container or an image, which an operand names. Most of their options have a value.
struct Container {
  std::string_view name;
  std::string_view flags;       // options without a value, between spaces; short ones may be joined (-it)
  std::string_view subcommand;  // one of these comes before the options
};
constexpr std::string_view docker_flags =
    "-i -t -d -P -q --rm --interactive --tty --detach --init --privileged --read-only --publish-all --quiet "
    "--no-healthcheck "
    "--oom-kill-disable --sig-proxy --disable-content-trust --replace --no-hosts --tls-verify";
constexpr std::string_view singularity_flags =
    "-e -c -C -w -u -i -p -f --nv --rocm --cleanenv --contain --containall --writable --writable-tmpfs --userns --ipc "
    "--pid "
    "--fakeroot --no-home --no-init --compat --no-umask --no-eval --nvccli --allow-setuid --keep-privs --no-privs "
    "--net";
constexpr std::array<Container, 5> containers{{
    {"docker", docker_flags, "run exec"},
    {"podman", docker_flags, "run exec"},
    {"nerdctl", docker_flags, "run exec"},
    {"singularity", singularity_flags, "exec run"},
    {"apptainer", singularity_flags, "exec run"},
}};
// Programs whose first argument that is no option is a script, except after an option that names code or a module.
constexpr std::array<Starter, 12> interpreters{{
    {"python", "WX", ""},
    {"pypy", "WX", ""},
    {"perl", "IMm", ""},
    {"ruby", "IrCE", ""},
    {"node", "r", "--require --import"},
    {"Rscript", "", ""},
    {"julia", "tpLJ", "--threads"},
    {"lua", "l", ""},
    {"php", "d", ""},
    {"java", "", "-cp -classpath --class-path"},
    {"octave", "p", "--path"},
    {"ipython", "", ""},
}};
const std::set<std::string, std::less<>> shells{"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash"};

std::string base_name(const std::string& word) { return fs::path(word).filename().string(); }

// python3.11 is a python, rubygems is no ruby.
const Starter* interpreter(const std::string& base) {
  for (const auto& one : interpreters)
    if (base.starts_with(one.name) && base.find_first_not_of("0123456789.", one.name.size()) == std::string::npos)
      return &one;
  return nullptr;
}
const Starter* starter(const std::string& base) {
  for (const auto& one : starters)
    if (base == one.name) return &one;
  return nullptr;
}

bool has_word(std::string_view list, std::string_view word) {
  for (auto at = list.find(word); at != std::string_view::npos; at = list.find(word, at + 1))
    if ((at == 0 || list[at - 1] == ' ') && (at + word.size() == list.size() || list[at + word.size()] == ' '))
      return true;
  return false;
}

// How many words an option takes, itself included.
std::size_t length(const Starter& how, const std::string& option) {
  if (option.starts_with("--") || has_word(how.long_ones, option)) return has_word(how.long_ones, option) ? 2 : 1;
  return how.valued.find(option.back()) != std::string_view::npos && option.size() == 2 ? 2 : 1;
}

bool is_option_word(const std::string& word) { return word.size() > 1 && (word[0] == '-' || word[0] == '+'); }

// A script, or a program that is named by its place.
bool starts_by_itself(const std::string& word) {
  static const std::set<std::string, std::less<>> extensions{".py", ".R",  ".r",  ".jl",  ".pl",
                                                             ".rb", ".sh", ".js", ".lua", ".m"};
  std::error_code error;
  const auto status = fs::status(word, error);
  if (error || !fs::is_regular_file(status)) return false;
  return extensions.contains(fs::path(word).extension().string()) ||
         (word.find('/') != std::string::npos && (status.permissions() & fs::perms::owner_exec) != fs::perms::none);
}

// Where the command that a container runs begins, after the name of its image; nullopt: `i` is no such program.
std::optional<std::size_t> in_container(const std::vector<std::string>& words, std::size_t i) {
  const auto base = base_name(words[i]);
  const auto how =
      std::find_if(containers.begin(), containers.end(), [&](const Container& one) { return one.name == base; });
  if (how == containers.end()) return std::nullopt;
  std::size_t at = i + 1;
  while (at < words.size() && !has_word(how->subcommand, words[at])) ++at;  // `docker container run`
  if (at == words.size()) return std::nullopt;
  for (++at; at < words.size() && is_option_word(words[at]); ++at) {
    const auto& option = words[at];
    const bool joined = option.size() > 1 && option[1] != '-';
    const bool flag = option.find('=') != std::string::npos ||
                      (joined ? std::all_of(option.begin() + 1, option.end(),
                                            [&](char c) { return has_word(how->flags, std::string("-") + c); }) ||
                                    (option.size() > 2 && !has_word(how->flags, option.substr(0, 2)))  // -v/a:/b
                              : has_word(how->flags, option));
    if (!flag) ++at;
  }
  return at < words.size() ? std::optional(at + 1) : std::nullopt;
}

Started shell_at(const std::vector<std::string>& words, std::size_t i) {
  std::size_t at = i + 1;
  bool code = false;
  for (; at < words.size() && is_option_word(words[at]); ++at) {
    const auto& option = words[at];
    if (option.starts_with("--")) continue;
    code = code || option.find('c') != std::string::npos;
    if (option.back() == 'o') ++at;  // -o pipefail
  }
  if (code && at < words.size()) return {i, words.size(), at};
  return {i, std::min(at + 1, words.size()), std::nullopt};
}

Started interpreter_at(const std::vector<std::string>& words, std::size_t i, const Starter& how) {
  const bool python = how.name == "python" || how.name == "pypy";
  std::size_t at = i + 1;
  while (at < words.size() && is_option_word(words[at])) {
    const auto& option = words[at];
    const bool module = python && option == "-m";
    const bool code = option == (python ? "-c" : "-e") || option == "-jar";
    if (module || code) return {i, std::min(at + 2, words.size()), std::nullopt};
    if (python && option.starts_with("-m") && option.size() > 2) return {i, at + 1, std::nullopt};
    at += length(how, option);
  }
  return {i, std::min(at + 1, words.size()), std::nullopt};
}

}  // namespace

bool assigns_variable(std::string_view word) {
  const auto equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0 || digit(word[0])) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](char c) { return alnum(c) || c == '_'; });
}

Started started_by(const std::vector<std::string>& words) {
  std::size_t i = 0;
  const auto program_at = [&](std::size_t at) -> std::optional<Started> {
    const auto base = base_name(words[at]);
    if (shells.contains(base)) return shell_at(words, at);
    if (const auto* how = interpreter(base)) return interpreter_at(words, at, *how);
    return std::nullopt;
  };
  while (i < words.size()) {
    if (const auto inside = in_container(words, i)) {
      // Without a command the image's own program gets what follows.
      if (*inside == words.size() || is_option_word(words[*inside])) return {*inside - 1, *inside, std::nullopt};
      i = *inside;
      continue;
    }
    if (assigns_variable(words[i])) {
      ++i;
      continue;
    }
    const auto* how = starter(base_name(words[i]));
    if (how == nullptr) break;
    std::size_t next = i + 1;
    while (next < words.size() && is_option_word(words[next])) {
      const bool end = words[next] == "--";
      next += length(*how, words[next]);
      if (end) break;
    }
    for (int n = 0; n < how->operands && next < words.size(); ++n) ++next;
    if (next >= words.size()) break;  // it starts nothing: it is the program itself
    i = next;
  }
  if (i >= words.size()) return {0, std::min<std::size_t>(1, words.size()), std::nullopt};
  if (const auto found = program_at(i)) {
    // A module that starts a script, such as torch.distributed.run
    if (!found->script && words[found->arguments - 1].find('/') == std::string::npos)
      for (std::size_t at = found->arguments; at + 1 < words.size(); ++at)
        if (words[found->arguments - 2] == "-m" && starts_by_itself(words[at])) return {i, at + 1, std::nullopt};
    return *found;
  }
  // Other tools that start a program: uv run python train.py, torchrun --nproc_per_node=2 train.py, mpirun ./solver
  for (std::size_t at = i + 1; at + 1 < words.size(); ++at) {
    if (starts_by_itself(words[at])) return {i, at + 1, std::nullopt};
    if (!is_option_word(words[at - 1]))  // else it may be an option's value
      if (const auto found = program_at(at)) return *found;
  }
  return {i, i + 1, std::nullopt};
}

namespace {

/// Reads a script for sh(1) into commands.
class ShellReader {
 public:
  explicit ShellReader(std::string_view script) : text_(script) {}

  std::vector<std::vector<ShellWord>> read() {
    if (!commands('\0')) return {};
    return std::move(out_);
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  // Up to the script's end, or the parenthesis that ends a substitution.
  bool commands(char until) {
    constexpr int deepest = 20;
    if (++depth_ > deepest) return false;
    std::vector<ShellWord> words;
    bool target = false;  // the next word is where something is redirected to
    const auto finish = [&] {
      if (!words.empty()) out_.push_back(std::move(words));
      words.clear();
      target = false;
    };
    while (!at_end()) {
      const char c = peek();
      if (until != '\0' && c == until) {
        ++at_;
        finish();
        --depth_;
        return true;
      }
      if (c == ' ' || c == '\t' || (c == '\\' && peek(1) == '\n')) {
        at_ += c == '\\' ? 2 : 1;
      } else if (c == '#') {
        while (!at_end() && peek() != '\n') ++at_;
      } else if (std::string_view(";&|()\n").find(c) != std::string_view::npos) {
        ++at_;
        finish();
      } else if (c == '<' || c == '>') {
        if (c == '<' && peek(1) == '<') return false;
        while (std::string_view("<>&|").find(peek()) != std::string_view::npos && !at_end()) ++at_;
        target = true;
      } else {
        ShellWord word;
        if (!read_word(word)) return false;
        const bool descriptor = (peek() == '<' || peek() == '>') && !word.text.empty() &&
                                word.text.find_first_not_of("0123456789") == std::string::npos;
        static const std::set<std::string, std::less<>> reserved{"if",   "then",  "else",  "elif", "fi", "do",
                                                                 "done", "while", "until", "!",    "{",  "}"};
        if (descriptor || (words.empty() && !word.expands && reserved.contains(word.text))) continue;
        if (!std::exchange(target, false)) words.push_back(std::move(word));
      }
    }
    finish();
    --depth_;
    return until == '\0';
  }

  bool read_word(ShellWord& word) {
    word.begin = at_;
    for (char quote = '\0'; !at_end() || quote != '\0';) {
      if (at_end()) return false;  // a quote without an end
      const char c = peek();
      if (quote == '\0' && std::string_view(" \t\n;&|()<>").find(c) != std::string_view::npos) break;
      ++at_;
      if (quote == '\'') {
        if (c == '\'')
          quote = '\0';
        else
          word.text += c;
      } else if (c == '\\') {
        if (at_end()) return false;
        const char next = text_[at_++];
        if (quote == '"' && std::string_view("$`\"\\\n").find(next) == std::string_view::npos) word.text += c;
        if (next != '\n') word.text += next;
      } else if (c == '"' || (c == '\'' && quote == '\0')) {
        quote = quote == c ? '\0' : c;
      } else if (c == '$' && peek() == '(' && peek(1) != '(') {
        ++at_;
        word.expands = true;
        if (!commands(')')) return false;
      } else {
        const bool glob = quote == '\0' && std::string_view("*?[").find(c) != std::string_view::npos;
        word.expands = word.expands || c == '$' || c == '`' || glob;
        word.text += c;
      }
    }
    word.end = at_;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<std::vector<ShellWord>> out_;
};

}  // namespace

std::vector<std::vector<ShellWord>> shell_commands(std::string_view script) { return ShellReader(script).read(); }

std::vector<std::string> name_words(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    if (word.size() > 3 && word.back() == 's' && word[word.size() - 2] != 's') word.pop_back();
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool camel = i > 0 && upper(c) && std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if (!alnum(c) || camel || (i > 0 && digit(c) != digit(name[i - 1]))) finish();
    if (alnum(c)) word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  finish();
  return words;
}

}  // namespace hypertune::inline v0::command
