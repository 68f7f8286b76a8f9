// HostPool: the hosts that an experiment may use; may change during the run.
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

/// A host and the way to open a stream to its agent.
struct RemoteHost {
  std::string name;  ///< for messages and records; unique in the pool
  AnyDialer dialer;
};

/// Notice that a host is about to be taken away.
struct HostNotice {
  std::string why;
  double seconds = 0;  ///< until the host's end; 0: not known
};

/// A handle: copies share one pool. All members may be called from any thread.
class HostPool {
 public:
  HostPool() : self_(std::make_shared<Shared>()) {}
  explicit HostPool(std::vector<RemoteHost> hosts) : HostPool() {
    for (auto& host : hosts) add(std::move(host));
  }

  /// Adds a host, or replaces the one of the same name. Error of kind `usage` if it has no name or no dialer.
  void add(RemoteHost host) {
    if (host.name.empty() || !host.dialer) fail(Errc::usage, "a host needs a name and a dialer that reaches it");
    change([&](auto& hosts) {
      std::erase_if(hosts, [&](const auto& h) { return h.name == host.name; });
      hosts.push_back(std::move(host));
    });
  }
  /// Removes a host: its trials save and continue elsewhere. Does nothing if there is none of this name. `why`: for
  /// messages; empty: the host is no longer on the list.
  void remove(const std::string& name, std::string why = {}) {
    change([&](auto& hosts) {
      if (std::erase_if(hosts, [&](const auto& h) { return h.name == name; }) > 0)
        self_->removed[name] = std::move(why);
      self_->waiting.erase(name);
    });
  }
  /// As remove(), called by the executor after the host has done its work. The pool's owner learns of it by
  /// take_retired().
  void retire(const std::string& name, std::string why) {
    {
      const std::lock_guard guard(self_->mutex);
      self_->retired.push_back(name);
    }
    remove(name, std::move(why));
  }
  /// Tells why a host that is being connected to has not answered, if the pool's owner knows more than the dialer.
  /// Messages about waiting trials show it. Valid until the host is connected or given up.
  void explain(const std::string& name, std::string why) {
    change([&](auto&) { self_->waiting[name] = std::move(why); });
  }
  /// Replaces the set of hosts that wait for resources which may never become free (a node, a quota). If all other
  /// hosts are refused, the run does not wait for these.
  void set_without_room(std::set<std::string> names) {
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
  /// The reason why a connecting host waits will never go away: the host is given up, and retried rarely.
  void refuse(const std::string& name, std::string why) {
    change([&](auto&) { self_->refused[name] = std::move(why); });
  }
  /// The host is about to be taken away in `seconds` (0: not known). Its trials save and continue elsewhere, as if the
  /// agent had received the notice. Then it is connected to again. Does nothing if the host is not connected.
  void give_notice(const std::string& name, std::string why, double seconds = 0) {
    change([&](auto&) { self_->notices[name] = {std::move(why), seconds}; });
  }
  std::vector<RemoteHost> hosts() const {
    const std::lock_guard guard(self_->mutex);
    return self_->hosts;
  }

  /// Why the host was last removed; empty: no reason was given.
  std::string why_removed(const std::string& name) const {
    const std::lock_guard guard(self_->mutex);
    const auto found = self_->removed.find(name);
    return found == self_->removed.end() ? std::string() : found->second;
  }
  /// Hosts that were retired since the last call, in order.
  std::vector<std::string> take_retired() const {
    const std::lock_guard guard(self_->mutex);
    return std::exchange(self_->retired, {});
  }
  /// The reasons given to explain() since the last call, by host name.
  std::map<std::string, std::string> take_explanations() const {
    const std::lock_guard guard(self_->mutex);
    return std::exchange(self_->waiting, {});
  }
  /// The reasons given to refuse() since the last call, by host name.
  std::map<std::string, std::string> take_refusals() const {
    const std::lock_guard guard(self_->mutex);
    return std::exchange(self_->refused, {});
  }
  /// The notices of give_notice() since the last call, by host name.
  std::map<std::string, HostNotice> take_notices() const {
    const std::lock_guard guard(self_->mutex);
    return std::exchange(self_->notices, {});
  }

  /// `changed` is called after each change, on the thread that makes it, until it is replaced (nullptr: removed).
  void on_change(std::function<void()> changed) const {
    const std::lock_guard guard(self_->mutex);
    self_->changed = std::move(changed);
  }

 private:
  struct Shared {
    mutable std::mutex mutex;
    std::vector<RemoteHost> hosts;
    std::vector<std::string> retired;                     // since the last take_retired()
    std::map<std::string, std::string> removed;           // reason, by name
    std::map<std::string, std::string> waiting, refused;  // reason, by name; not taken yet
    std::map<std::string, HostNotice> notices;            // by name; not taken yet
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
