// ResponseReader: an answer of HTTP from bytes as they come. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s::detail {

/// Takes one answer, its body piece by piece. Headers have a bound, and so has the body where one is given.
class ResponseReader {
 public:
  using Take = std::function<void(std::string_view)>;

  /// Without `take` the body is collected. `max_body` 0: any size. `has_body` false: as that of CONNECT.
  explicit ResponseReader(std::size_t max_body, Take take = {}, bool has_body = true);
  ResponseReader(ResponseReader&&) noexcept;
  ~ResponseReader();

  /// Takes bytes; how many of them were this answer's (all, unless it is complete). Error of kind `protocol` for what
  /// is no HTTP or too long; what `take` throws.
  std::size_t feed(std::string_view bytes);
  /// The connection ended. Whether the answer is complete by that.
  bool end();

  bool begun() const;   ///< a byte has come
  bool headed() const;  ///< its headers are complete
  bool done() const;
  bool keep_alive() const;  ///< the connection can be used again, once it is done
  int status() const;
  std::string header(const char* name) const;
  std::optional<double> retry_after() const;  ///< seconds; a date is none of the API server's
  std::string& body() { return *body_; }

 private:
  struct State;
  std::unique_ptr<std::string> body_;
  std::unique_ptr<State> state_;
};

}  // namespace hypertune::inline v0::k8s::detail
