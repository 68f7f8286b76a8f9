// Query: what a request asks for.
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

/// The target of a request, taken apart: /api/trials?sort=value&limit=100. Of a name that is there twice the first one
/// counts; what it does not know of names is left alone.
class Query {
 public:
  Query() = default;
  /// Error of kind `input` for what is no path of a target: it does not begin with '/', or a %xx in it is broken. At
  /// most 65,536 bytes and 100 parameters.
  explicit Query(std::string_view target);

  const std::string& path() const { return path_; }
  /// Of several empty ones, too: "".
  const std::string& text(std::string_view name) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  /// A whole number, `otherwise` where there is none. Error of kind `input` where it is none, or not within bounds.
  std::int64_t whole(std::string_view name, std::int64_t otherwise, std::int64_t least, std::int64_t most) const;
  std::optional<double> real(std::string_view name) const;
  /// One of these words, the first one where it is not there.
  std::string word(std::string_view name, std::initializer_list<std::string_view> words) const;

 private:
  std::string path_;
  std::vector<std::pair<std::string, std::string>> all_;
};

/// `text` with %xx replaced, and '+' by a space where `plus`. Error of kind `input`.
std::string percent_decoded(std::string_view text, bool plus);
/// Texts between commas.
std::vector<std::string> split(std::string_view text, char at);

}  // namespace hypertune::inline v0::view
