// Experiments: the experiments that a dashboard shows, and the thread that reads them.
#pragma once

#include "followed.hpp"

#include <hypertune/detail/descriptor.hpp>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace hypertune::inline v0::dashboard {

class Experiments {
 public:
  /// Called on the reading thread: with an experiment's id after it has changed, or with "" after experiments have been
  /// added or removed.
  using Changed = std::function<void(const std::string& id)>;

  /// `roots`: folders of experiments, or folders with experiments at any level below; `expected`: an experiment that
  /// may not have begun yet. Error of kind `usage` for a path that is no folder.
  Experiments(std::vector<std::filesystem::path> roots, bool expected);
  Experiments(const Experiments&) = delete;
  Experiments& operator=(const Experiments&) = delete;
  ~Experiments();

  void follow(Changed changed);  ///< starts the thread; to be called once
  void stop();                   ///< interrupts a read in progress within milliseconds

  std::vector<std::shared_ptr<Followed>> all() const;
  /// Finds by id; "" finds the only experiment, if there is just one. nullptr: not found.
  std::shared_ptr<Followed> find(const std::string& id) const;

 private:
  void run(const std::stop_token& stop);
  void follow_all(const std::stop_token& stop);
  bool scan();
  void find_experiments(const std::filesystem::path& root, const std::filesystem::path& folder, int depth,
                        std::size_t& left, std::map<std::filesystem::path, std::string>& found);
  void watch(const std::filesystem::path& folder, bool experiment);
  bool drain_watches();
  void wait(int milliseconds, bool watching);

  std::vector<std::filesystem::path> roots_;
  bool expected_;
  Changed changed_;
  mutable std::mutex mutex_;
  std::map<std::filesystem::path, std::shared_ptr<Followed>> all_;
  std::set<std::string> ids_;
  detail::Descriptor watches_, wake_;
  std::map<int, std::filesystem::path> watched_;
  std::map<std::filesystem::path, bool> watched_folders_;  // true: watched as an experiment
  std::set<std::filesystem::path> changed_experiments_;    // folders of experiments that have changed
  bool folders_changed_ = true;
  std::jthread thread_;
};

}  // namespace hypertune::inline v0::dashboard
