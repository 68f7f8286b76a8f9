#include "page_modules.hpp"

#include <hypertune/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <vector>

namespace hypertune::inline v0::dashboard {

namespace {

[[noreturn]] void refuse(const std::string& path, std::string_view line, std::string_view why) {
  fail(Errc::input, "{} cannot be put into one script: {}: {}", path, why, line.substr(0, 100));
}

std::string_view name_at(std::string_view text) {
  const auto end = std::find_if(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '$';
  });
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

class Joiner {
 public:
  explicit Joiner(const std::function<std::string(std::string_view)>& text_of) : text_of_(text_of) {}

  void add(const std::string& path) {
    if (done_.contains(path)) return;
    if (!begun_.insert(path).second) fail(Errc::input, "{} is imported in a circle", path);
    const std::string text = text_of_(path);
    if (text.find("</script") != std::string::npos || text.find("<!--") != std::string::npos)
      fail(Errc::input, "{} cannot be put into one script: it would end there", path);
    std::string body;
    std::vector<std::string> exports;
    for (std::size_t at = 0; at < text.size();) {
      const auto end = std::min(text.find('\n', at), text.size());
      const std::string_view line = std::string_view(text).substr(at, end - at);
      at = end + 1;
      if (line.starts_with("import "))
        body += imported(path, line);
      else if (line.starts_with("export "))
        body += exported(path, line, exports);
      else
        body += line;
      body += '\n';
    }
    script_ +=
        fmt::format("modules['{}'] = (() => {{\n{}return {{{}}};\n}})();\n", path, body, fmt::join(exports, ", "));
    done_.insert(path);
  }

  std::string take() { return "(() => {\n'use strict';\nconst modules = {};\n" + std::move(script_) + "})();\n"; }

 private:
  // import {a, b as c} from './x.js';
  std::string imported(const std::string& path, std::string_view line) {
    const auto close = line.find('}');
    constexpr std::string_view head = "import {", from = "} from '", tail = "';";
    if (!line.starts_with(head) || close == std::string_view::npos || !line.substr(close).starts_with(from) ||
        !line.ends_with(tail))
      refuse(path, line, "an import that is not one line of names from a file");
    std::string names(line.substr(head.size(), close - head.size()));
    for (auto at = names.find(" as "); at != std::string::npos; at = names.find(" as ")) names.replace(at, 4, ": ");
    const auto relative = line.substr(close + from.size(), line.size() - close - from.size() - tail.size());
    if (!relative.starts_with('.')) refuse(path, line, "an import from what is no file of the page");
    const auto whole = (std::filesystem::path(path).parent_path() / relative).lexically_normal().generic_string();
    add(whole);
    return fmt::format("const {{{}}} = modules['{}'];", names, whole);
  }

  // export const x = …, export function f(…), export async function f(…), export class C
  std::string exported(const std::string& path, std::string_view line, std::vector<std::string>& exports) {
    const std::string_view what = line.substr(7);
    for (const std::string_view kind : {"const ", "function ", "async function ", "class "}) {
      if (!what.starts_with(kind)) continue;
      const auto name = name_at(what.substr(kind.size()));
      if (name.empty()) break;
      exports.emplace_back(name);
      return std::string(what);
    }
    refuse(path, line, "an export that does not stand before a constant, a function or a class");
  }

  const std::function<std::string(std::string_view)>& text_of_;
  std::set<std::string> begun_, done_;
  std::string script_;
};

}  // namespace

std::string joined_modules(const std::string& path, const std::function<std::string(std::string_view)>& text_of) {
  Joiner joiner(text_of);
  joiner.add(path);
  return joiner.take();
}

}  // namespace hypertune::inline v0::dashboard
