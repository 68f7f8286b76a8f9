// HostPool: the machines that an experiment may use, changed while it runs.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/remote/dialer.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote {

/// A machine, by how a stream to an agent on it is opened.
struct RemoteHost {
  std::string name;  ///< for people, and for the record; unlike all others
  AnyDialer dialer;
};

/// A host is about to be taken away.
struct HostNotice {
  std::string why;
  double seconds = 0;  ///< until then; 0: nobody says
};

/// A handle: copies are one pool. All members may be called from any thread.
class HostPool {
 public:
  HostPool() : self_(std::make_shared<Shared>()) {}
  explicit HostPool(std::vector<RemoteHost> hosts) : HostPool() {
    for (auto& host : hosts) add(std::move(host));
  }

  /// The host can be used from now on. Error of kind `usage` if it has no name or no way to be reached.
  void add(RemoteHost host) {
    if (host.name.empty() || !host.dialer) fail(Errc::usage, "a host needs a name and a dialer that reaches it");
    change([&](auto& hosts) {
      std::erase_if(hosts, [&](const auto& h) { return h.name == host.name; });
      hosts.push_back(std::move(host));
    });
  }
  /// The host is to be used no more: what runs there saves and goes elsewhere. Nothing if there is none of this name.
  /// `why`: for people; empty: that it is not on the list any more.
  void remove(const std::string& name, std::string why = {}) {
    change([&](auto& hosts) {
      if (std::erase_if(hosts, [&](const auto& h) { return h.name == name; }) > 0)
        self_->removed[name] = std::move(why);
      self_->waiting.erase(name);
    });
  }
  /// Likewise, by whoever uses the pool: the host has done all that it was to do. Who keeps the pool learns of it.
  void retire(const std::string& name, std::string why) {
    {
      const std::lock_guard guard(self_->mutex);
      self_->retired.push_back(name);
    }
    remove(name, std::move(why));
  }
  /// Why a host that is being connected to is not there yet, where whoever keeps the pool knows more than its dialer:
  /// trials that wait for a place say so. It holds until the host is there, or is given up.
  void explain(const std::string& name, std::string why) {
    change([&](auto&) { self_->waiting[name] = std::move(why); });
  }
  /// These, of those that are being connected to, and no others wait for a place that may never be there (a node, a
  /// quota): where all others are refused, the run does not wait for these.
  void lack_room(std::set<std::string> names) {
    {
      const std::lock_guard guard(self_->mutex);
      if (self_->without_room == names) return;
    }
    change([&](auto&) { self_->without_room = std::move(names); });
  }
  std::set<std::string> without_room() const {
    const std::lock_guard guard(self_->mutex);
    return self_->without_room;
  }
  /// What a host that is being connected to waits for will never come about: it is given up, and tried again seldom.
  void refuse(const std::string& name, std::string why) {
    change([&](auto&) { self_->refused[name] = std::move(why); });
  }
  /// The host is about to be taken away, in so many seconds (0: nobody says): what runs there saves and goes elsewhere,
  /// as it does when the agent itself has learnt of it. Then the host is connected to again. Nothing if it is not
  /// there.
  void give_notice(const std::string& name, std::string why, double seconds = 0) {
    change([&](auto&) { self_->notices[name] = {std::move(why), seconds}; });
  }
  std::vector<RemoteHost> hosts() const {
    const std::lock_guard guard(self_->mutex);
    return self_->hosts;
  }

  /// Why the host was removed last; empty: nothing was said.
  std::string why_removed(const std::string& name) const {
    const std::lock_guard guard(self_->mutex);
    const auto found = self_->removed.find(name);
    return found == self_->removed.end() ? std::string() : found->second;
  }
  /// Hosts that were retired since the last call, in that order.
  std::vector<std::string> take_retired() const {
    const std::lock_guard guard(self_->mutex);
    return std::exchange(self_->retired, {});
  }
  /// What explain() has said since the last call, by the hosts' names.
  std::map<std::string, std::string> take_explanations() const {
    const std::lock_guard guard(self_->mutex);
    return std::exchange(self_->waiting, {});
  }
  /// Likewise of refuse().
  std::map<std::string, std::string> take_refusals() const {
    const std::lock_guard guard(self_->mutex);
    return std::exchange(self_->refused, {});
  }
  /// Likewise of give_notice().
  std::map<std::string, HostNotice> take_notices() const {
    const std::lock_guard guard(self_->mutex);
    return std::exchange(self_->notices, {});
  }

  /// `changed` is called after each change until it is replaced (nullptr: by nothing), on the thread that makes it.
  void on_change(std::function<void()> changed) const {
    const std::lock_guard guard(self_->mutex);
    self_->changed = std::move(changed);
  }

 private:
  struct Shared {
    mutable std::mutex mutex;
    std::vector<RemoteHost> hosts;
    std::vector<std::string> retired;                     // not taken yet
    std::map<std::string, std::string> removed;           // why, by name
    std::map<std::string, std::string> waiting, refused;  // why, by name; not taken yet
    std::map<std::string, HostNotice> notices;            // likewise
    std::set<std::string> without_room;
    std::function<void()> changed;
  };
  template <class F>
  void change(const F& f) {
    const std::lock_guard guard(self_->mutex);
    f(self_->hosts);
    if (self_->changed) self_->changed();
  }

  std::shared_ptr<Shared> self_;
};

}  // namespace hypertune::inline v0::remote
