// The manifest of a sealed checkpoint: which files it has, and how each can be checked.
#pragma once

#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/utf8.hpp>
#include <hypertune/error.hpp>
#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/trial.hpp>

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// One file of a checkpoint.
struct ManifestFile {
  std::string name;        ///< relative to the checkpoint's folder, '/' between parts
  std::uint64_t size = 0;  ///< bytes
  std::string checksum;    ///< XXH3-128 of its content, 32 hexadecimal digits
  friend bool operator==(const ManifestFile&, const ManifestFile&) = default;
};

struct Manifest {
  static constexpr int version = 1;                                  ///< of the format
  static constexpr std::string_view file_name = "manifest.json";     ///< in the checkpoint's folder
  static constexpr std::size_t max_bytes = std::size_t{256} << 20U;  ///< of its text; a larger one is refused unread
  static constexpr std::size_t max_name = 4096;                      ///< of a file's name

  TrialId trial = 0;
  int steps = 0;
  std::string parent;               ///< the checkpoint that training continued from; empty: none
  std::vector<ManifestFile> files;  ///< sorted by name, each once

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// Throws an Error of kind `usage` unless a manifest can contain `name`: safe (see require_safe_name), UTF-8 without
/// control characters, at most Manifest::max_name bytes, and not the manifest's own name.
void require_manifest_name(std::string_view name);

/// The manifest as JSON. Its last member is a checksum of all text before it, so that the manifest itself can be
/// verified. Error of kind `usage` for a name that it cannot contain.
std::string to_text(const Manifest& manifest);

/// The inverse of to_text. `text` is not trusted: whatever is malformed, unknown, unsafe, unsorted or damaged is an
/// Error of kind `corrupt` that says what and where; nothing else is thrown.
Manifest parse_manifest(std::string_view text);

namespace detail {

/// Whether `text` is UTF-8 (no overlong forms, no surrogates) without control characters.
inline bool is_plain_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto [bytes, code, valid] = decode_utf8(text);
    if (!valid || code < 0x20 || code == 0x7F) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

inline void append_manifest_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
}

/// Reads only the part of JSON that to_text uses: white space, strings without \u escapes, whole numbers. (Boost.JSON
/// would add two seconds to the compilation of every program, or a library to link.)
class ManifestCursor {
 public:
  explicit ManifestCursor(std::string_view text) : text_(text) {}

  template <class... Args>
  [[noreturn]] void refuse(detail::FormatText<Args...> format, Args&&... args) const {
    fail(Errc::corrupt, "manifest, byte {}: {}", at_, detail::format(format, std::forward<Args>(args)...));
  }

  void expect(char c) {
    skip_space();
    if (at_ == text_.size()) refuse("it ends where '{}' should stand", c);
    if (text_[at_] != c) refuse("'{}' should stand here", c);
    ++at_;
  }
  /// Takes `c` if it comes next.
  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect_key(std::string_view key) {
    if (string(64) != key) refuse("the member \"{}\" should stand here", key);
    expect(':');
  }
  std::string string(std::size_t max_size) {
    expect('"');
    std::string value;
    for (;; ++at_) {
      if (at_ == text_.size()) refuse("a string has no end");
      char c = text_[at_];
      if (c == '"') break;
      if (c == '\\') {
        ++at_;
        if (at_ == text_.size() || (text_[at_] != '"' && text_[at_] != '\\')) refuse("an escape that is not used here");
        c = text_[at_];
      }
      if (value.size() == max_size) refuse("a string is longer than {} bytes", max_size);
      value += c;
    }
    ++at_;
    if (!is_plain_utf8(value)) refuse("the string before is not plain UTF-8");
    return value;
  }
  std::uint64_t number(std::uint64_t largest) {
    skip_space();
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
      if (value > (largest - digit) / 10) refuse("a number is larger than {}", largest);
      value = value * 10 + digit;
    }
    if (at_ == begin) refuse("a whole number should stand here");
    if (text_[begin] == '0' && at_ - begin > 1) refuse("a number starts with 0");
    return value;
  }
  /// Returns the position of the next character.
  std::size_t skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace detail

inline void require_manifest_name(std::string_view name) {
  require_safe_name(name);
  if (name == Manifest::file_name)
    fail(Errc::usage, "'{}' is hypertune's own file in a checkpoint: use another name, or put it in a folder", name);
  if (name.size() > Manifest::max_name)
    fail(Errc::usage, "a checkpoint file's name has {} bytes, but at most {} are allowed", name.size(),
         Manifest::max_name);
  if (name.find("//") != std::string_view::npos)
    fail(Errc::usage, "'{}' cannot be a checkpoint file's name: it has an empty part", name);
  if (!detail::is_plain_utf8(name)) {
    std::string shown(name);
    for (char& c : shown)
      if (c < 0x20 || c == 0x7F) c = '?';
    fail(Errc::usage, "'{}' cannot be a checkpoint file's name: it is not UTF-8 or has control characters", shown);
  }
}

inline std::string to_text(const Manifest& manifest) {
  std::string out = detail::format(
      "{{\"format\": \"hypertune-checkpoint\",\n \"version\": {},\n \"trial\": {},\n \"steps\": {},\n \"parent\": ",
      Manifest::version, manifest.trial, manifest.steps);
  detail::append_manifest_string(out, manifest.parent);
  out += ",\n \"files\": [";
  const char* separator = "\n  ";
  for (const auto& file : manifest.files) {
    require_manifest_name(file.name);
    out += separator;
    out += "{\"name\": ";
    detail::append_manifest_string(out, file.name);
    out += detail::format(", \"size\": {}, \"xxh3_128\": \"{}\"}}", file.size, file.checksum);
    separator = ",\n  ";
  }
  out += "],\n \"checksum\": ";
  const std::string checksum = detail::ContentHash::of(out);
  return out + '"' + checksum + "\"}\n";
}

inline Manifest parse_manifest(std::string_view text) {
  constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
  if (text.size() > Manifest::max_bytes)
    fail(Errc::corrupt, "manifest: {} bytes are more than any checkpoint needs", text.size());
  detail::ManifestCursor in(text);
  Manifest manifest;
  in.expect('{');
  in.expect_key("format");
  if (in.string(64) != "hypertune-checkpoint") in.refuse("this is not the manifest of a checkpoint");
  in.expect(',');
  in.expect_key("version");
  if (const auto version = in.number(largest); version != Manifest::version)
    in.refuse("its format has version {}, but this hypertune reads version {}: use the hypertune that wrote it",
              version, Manifest::version);
  in.expect(',');
  in.expect_key("trial");
  manifest.trial = static_cast<TrialId>(in.number(largest));
  in.expect(',');
  in.expect_key("steps");
  manifest.steps = static_cast<int>(in.number(std::numeric_limits<int>::max()));
  in.expect(',');
  in.expect_key("parent");
  manifest.parent = in.string(Manifest::max_name);
  in.expect(',');
  in.expect_key("files");
  in.expect('[');
  std::uint64_t total = 0;
  if (!in.accept(']')) {
    do {
      ManifestFile file;
      in.expect('{');
      in.expect_key("name");
      file.name = in.string(Manifest::max_name);
      try {
        require_manifest_name(file.name);
      } catch (const Error& e) { in.refuse("{}", e.what()); }
      if (!manifest.files.empty() && file.name <= manifest.files.back().name)
        in.refuse("file '{}' stands twice or out of order", file.name);
      in.expect(',');
      in.expect_key("size");
      file.size = in.number(largest);
      if (file.size > largest - total) in.refuse("the sizes add up to more than any disk holds");
      total += file.size;
      in.expect(',');
      in.expect_key("xxh3_128");
      file.checksum = in.string(32);
      if (!detail::ContentHash::well_formed(file.checksum)) in.refuse("file '{}' has no checksum", file.name);
      in.expect('}');
      manifest.files.push_back(std::move(file));
    } while (in.accept(','));
    in.expect(']');
  }
  in.expect(',');
  in.expect_key("checksum");
  const std::size_t covered = in.skip_space();
  const std::string checksum = detail::ContentHash::of(text.substr(0, covered));
  if (text.substr(covered) != detail::format("\"{}\"}}\n", checksum))
    in.refuse("its own checksum does not match: it is damaged");
  return manifest;
}

}  // namespace hypertune::inline v0
