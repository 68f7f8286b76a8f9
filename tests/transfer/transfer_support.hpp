// Two nodes on this machine, and what stands between them.
#pragma once

#include "support/checkpoint_store_conformance.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/checkpoint/transfer/transfer.hpp>
#include <hypertune/random.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::test {

/// Bytes that nothing compresses, the same for the same seed.
std::string random_bytes(std::uint64_t seed, std::size_t size);

/// A source and a target of checkpoints, each a store of its own.
struct TwoNodes {
  TwoNodes()
      : source(directory.path() / "source", {.sync = false}), target(directory.path() / "target", {.sync = false}) {}

  CheckpointServerOptions options() {
    CheckpointServerOptions o;
    o.stores = {source};
    return o;
  }
  std::filesystem::path socket(const std::string& name) const { return directory.path() / name; }
  /// The folders aside of fetches that did not end.
  std::vector<std::string> partial(TrialId trial) const;

  TemporaryDirectory directory{TemporaryDirectory::memory()};
  LocalCheckpointStore source, target;
};

/// The error of a call: its kind and text.
std::pair<Errc, std::string> error_of(const std::function<void()>& call);

/// What happens to the bytes that a connection brings back, by connection (from 0) and by their place in it.
struct Meddling {
  std::function<std::uint64_t(int connection)> cut_after;  ///< bytes of answers until it is cut; nullptr: never
  std::function<void(int connection, std::uint64_t at, char* data, std::size_t size)> spoil;
};

/// Stands between client and server, on a unix socket.
class Proxy {
 public:
  Proxy(std::filesystem::path listen, std::filesystem::path server, Meddling meddling);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  Endpoint endpoint() const;
  int connections() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// A server that answers each connection by a script: it is given what the client has sent up to a blank line, and
/// says what to send; `hold`: then the connection stays open until the server goes, else it is closed.
class ScriptedServer {
 public:
  struct Answer {
    std::string bytes;
    bool hold = false;
    std::string repeated = {};  ///< sent again and again after them, until the client leaves
  };
  ScriptedServer(std::filesystem::path listen, std::function<Answer(const std::string& request)> script);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  Endpoint endpoint() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Sends text to a unix socket and reads until the other side closes, or `timeout` has passed.
std::string exchange(const std::filesystem::path& socket, std::string_view text, std::chrono::milliseconds timeout);

}  // namespace hypertune::inline v0::test
