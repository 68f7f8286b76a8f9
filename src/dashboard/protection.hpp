// Protection: TLS and a token, for access from other machines.
#pragma once

#include "server.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace hypertune::inline v0::dashboard {

/// Required by a Server that listens beyond loopback. Cannot be constructed without OpenSSL.
class Protection {
 public:
  /// Error of kind `usage` if a file is not valid, or this was built without OpenSSL.
  Protection(const std::filesystem::path& identity, const std::filesystem::path& token);
  Protection(const Protection&) = delete;
  Protection& operator=(const Protection&) = delete;
  ~Protection();

  Gate& gate();
  Encryption& encryption();
  const std::string& fingerprint() const;
  /// "/enter?key=…": opens the page for a day, once, in the browser that follows it first.
  std::string entry() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hypertune::inline v0::dashboard
