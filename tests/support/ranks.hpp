// Groups of ranks for tests: as threads of the test, and as forked processes that can be killed and stopped.
#pragma once

#include "support/rendezvous.hpp"

#include <hypertune/train/communicator.hpp>
#include <hypertune/trial/group.hpp>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::test {

inline GroupPlace place_of(int rank, int size, std::uint32_t generation = 1) {
  GroupPlace place;
  place.generation = generation;
  place.rank = rank;
  place.hosts.assign(static_cast<std::size_t>(size), "here");
  return place;
}

/// "late 1,3: message"; any other exception's text otherwise.
inline std::string outcome_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const GroupError& group) {
    constexpr const char* kinds[] = {"changed", "lost", "late", "failed"};
    return fmt::format("{} {}: {}", kinds[static_cast<int>(group.kind())], fmt::join(group.ranks(), ","), group.what());
  } catch (const std::exception& other) { return other.what(); }
}

/// What the body threw on each rank, as text; empty: nothing. Catch2's assertions are not for several threads.
using Body = std::function<void(int rank)>;
inline std::vector<std::string> run_threads(int size, const Body& body) {
  std::vector<std::string> outcomes(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) { outcomes[static_cast<std::size_t>(rank)] = outcome_of(std::current_exception()); }
    });
  for (auto& thread : threads) thread.join();
  return outcomes;
}

/// Forked ranks. A child says things to its parent a line at a time; its last line is its outcome, after "=".
class Processes {
 public:
  using ChildBody = std::function<void(int rank, Rendezvous& rendezvous, const std::function<void(std::string)>& say)>;

  Processes(int size, const ChildBody& body) {
    std::fflush(nullptr);
    for (int rank = 0; rank < size; ++rank) {
      int ends[2];
      if (::pipe(ends) != 0) std::abort();
      const pid_t child = ::fork();
      if (child == 0) {
        ::close(ends[0]);
        run_child(rank, ends[1], body);
      }
      ::close(ends[1]);
      children_.push_back({child, ::fdopen(ends[0], "r")});
    }
    rendezvous_.serve();
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() {
    for (int rank = 0; rank < static_cast<int>(children_.size()); ++rank) {
      kill(rank, SIGKILL);
      reap(rank);
      std::fclose(children_[static_cast<std::size_t>(rank)].said);
    }
  }

  Rendezvous& rendezvous() { return rendezvous_.memory(); }

  /// Waits for the next line; empty at the end.
  std::string hear(int rank) {
    std::string line;
    for (int c = 0; (c = std::fgetc(children_[static_cast<std::size_t>(rank)].said)) != EOF && c != '\n';)
      line += static_cast<char>(c);
    return line;
  }
  /// Past all else that it says.
  std::string outcome(int rank) {
    for (;;) {
      auto line = hear(rank);
      if (line.empty()) return "died";
      if (line[0] == '=') return line.substr(1);
    }
  }
  void kill(int rank, int signal) {
    const auto& child = children_[static_cast<std::size_t>(rank)];
    if (!child.reaped) ::kill(child.pid, signal);
  }
  /// Until it has stopped itself.
  void wait_stopped(int rank) { ::waitpid(children_[static_cast<std::size_t>(rank)].pid, nullptr, WUNTRACED); }

 private:
  struct Child {
    pid_t pid;
    std::FILE* said;
    bool reaped = false;
  };

  [[noreturn]] void run_child(int rank, int out, const ChildBody& body) {
    ::alarm(120);  // whatever happens to the test
    const auto say = [out](const std::string& text) {
      const std::string line = text + "\n";
      if (::write(out, line.data(), line.size()) < 0) ::_exit(1);
    };
    std::string outcome;
    try {
      body(rank, rendezvous_, say);
    } catch (...) { outcome = outcome_of(std::current_exception()); }
    say("=" + outcome);
    ::_exit(0);
  }
  void reap(int rank) {
    auto& child = children_[static_cast<std::size_t>(rank)];
    if (!std::exchange(child.reaped, true)) ::waitpid(child.pid, nullptr, 0);
  }

  ServedRendezvous rendezvous_;
  std::vector<Child> children_;
};

}  // namespace hypertune::inline v0::test
