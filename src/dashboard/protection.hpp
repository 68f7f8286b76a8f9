// Protection: TLS and a token, for who asks from another machine.
#pragma once

#include "server.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace hypertune::inline v0::dashboard {

/// What a Server beyond loopback needs. Without OpenSSL there is none.
class Protection {
 public:
  /// Error of kind `usage` where a file is none, or this was built without OpenSSL.
  Protection(const std::filesystem::path& identity, const std::filesystem::path& token);
  Protection(const Protection&) = delete;
  Protection& operator=(const Protection&) = delete;
  ~Protection();

  Gate& gate();
  Encryption& encryption();
  const std::string& fingerprint() const;
  /// "/enter?key=…": opens the page once, for a day, in the browser that follows it first.
  std::string entry() const;

 private:
  class State;
  std::unique_ptr<State> self_;
};

}  // namespace hypertune::inline v0::dashboard
