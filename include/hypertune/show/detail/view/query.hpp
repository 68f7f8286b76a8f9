// Query: the parsed target of a request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::view {

/// The target of a request, parsed: /api/trials?sort=value&limit=100. If a name occurs twice, the first one counts.
/// Unknown names are ignored.
class Query {
 public:
  Query() = default;
  /// Error of kind `input` for an invalid target: it does not begin with '/', or contains a broken %xx. At most 65,536
  /// bytes and 100 parameters.
  explicit Query(std::string_view target);

  const std::string& path() const { return path_; }
  /// "" if the parameter is missing or empty.
  const std::string& text(std::string_view name) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  /// A whole number; `otherwise` if the parameter is missing. Error of kind `input` if it is not a whole number, or out
  /// of bounds.
  std::int64_t whole(std::string_view name, std::int64_t otherwise, std::int64_t least, std::int64_t most) const;
  std::optional<double> real(std::string_view name) const;
  /// One of these words; the first one if the parameter is missing. Error of kind `input` for any other word.
  std::string word(std::string_view name, std::initializer_list<std::string_view> words) const;

 private:
  std::string path_;
  std::vector<std::pair<std::string, std::string>> all_;
};

/// The texts between the characters `at`.
std::vector<std::string> split(std::string_view text, char at);

}  // namespace hypertune::inline v0::view
