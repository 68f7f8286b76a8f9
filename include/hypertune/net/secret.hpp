// Secret: proves that a peer belongs to the experiment. It is read from a file or a descriptor, never from argv.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace hypertune::inline v0 {

/// A bearer token. It is never printed, and its memory is wiped. Needs hypertune::net, with OpenSSL.
class Secret {
 public:
  /// No token: empty() is true.
  Secret() = default;
  /// Error of kind `usage` unless it has 16 to 1,024 visible ASCII characters.
  explicit Secret(std::string text);
  Secret(const Secret&) = default;
  Secret(Secret&&) = default;
  Secret& operator=(const Secret& other);
  Secret& operator=(Secret&& other) noexcept;
  ~Secret();

  /// 32 bytes from the system's generator, as 64 hexadecimal digits.
  static Secret generate();
  /// The first line of a file. Error of kind `usage` if others than its owner may read it, `io` if it cannot be read.
  static Secret from_file(const std::filesystem::path& path);
  /// Reads from a descriptor (a pipe, a memfd) up to its end or the end of the first line; the descriptor stays open.
  static Secret from_descriptor(int descriptor);
  /// Writes a new file that only its owner can read. Error of kind `io`, also if the file exists.
  void write_file(const std::filesystem::path& path) const;

  bool empty() const { return text_.empty(); }
  /// Compares in a time that does not reveal where the texts differ.
  bool matches(std::string_view other) const;
  /// The token itself: for a header or a pipe, never for a log.
  const std::string& reveal() const { return text_; }

 private:
  std::string text_;
};

}  // namespace hypertune::inline v0
