// ResponseReader: parses an HTTP answer from bytes as they arrive. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::net {

/// Reads one answer, its body piece by piece. The size of headers is limited, and that of the body if a limit is given.
class ResponseReader {
 public:
  using Take = std::function<void(std::string_view)>;

  /// Without `take` the body is collected. `max_body` 0: no limit. `has_body` false: as in the answer to a CONNECT.
  explicit ResponseReader(std::size_t max_body, Take take = {}, bool has_body = true);
  ResponseReader(ResponseReader&&) noexcept;
  ~ResponseReader();

  /// Returns how many of the bytes belong to this answer (all, unless it is complete). Error of kind `protocol` if it
  /// is not HTTP or too long. Exceptions of `take` pass through.
  std::size_t feed(std::string_view bytes);
  /// The connection ended. Returns whether the answer is complete by that.
  bool end();

  bool begun() const;   ///< a byte has come
  bool headed() const;  ///< its headers are complete
  bool done() const;
  bool keep_alive() const;  ///< whether the connection can be used again after this answer
  int status() const;
  std::string header(const char* name) const;
  std::optional<double> retry_after() const;  ///< seconds; the API server sends no dates
  std::string& body() { return *body_; }

 private:
  struct State;
  std::unique_ptr<std::string> body_;
  std::unique_ptr<State> state_;
};

}  // namespace hypertune::inline v0::net
