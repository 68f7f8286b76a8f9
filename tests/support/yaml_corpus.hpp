// What the tests have the readers of YAML read, with what became of it: for the test that holds the JSON Schema
// against the readers (tests/tools/test_schema.py).
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/record/detail/json_text.hpp>

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace support {

/// What `read` returns or throws. Where HYPERTUNE_YAML_CORPUS names a file, a line of JSON is added to it: `kind`, the
/// text, and the error.
template <class Read>
auto kept(const char* kind, const std::string& text, const Read& read) {
  const auto keep = [&](std::string_view error) {
    const char* file = std::getenv("HYPERTUNE_YAML_CORPUS");
    if (file == nullptr) return;
    std::string line = "{\"kind\": ";
    hypertune::detail::append_json(line, std::string_view(kind));
    line += ", \"text\": ";
    hypertune::detail::append_json(line, std::string_view(text));
    line += ", \"error\": ";
    hypertune::detail::append_json(line, error);
    std::ofstream(file, std::ios::app) << line + "}\n";
  };
  try {
    auto made = read();
    keep("");
    return made;
  } catch (const hypertune::Error& error) {
    keep(error.what());
    throw;
  }
}

}  // namespace support
