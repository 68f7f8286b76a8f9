// MachineAccess: logging in to a cluster's machines and setting them up for trials.
#pragma once

#include <hypertune/cluster/machine.hpp>
#include <hypertune/trial/resources.hpp>

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hypertune::inline v0::cluster {

class Cluster;

struct UpOptions {
  bool no_restart = false;    ///< machines that are set up already are not set up again, even if the file has changed
  bool restart_only = false;  ///< the commands of the file are not run
};

/// The result of setting up one machine.
struct MachineReport {
  Machine machine;
  std::string error;  ///< empty: the machine is set up
  std::optional<Resources> resources;
  /// With an error: nothing answered at the machine's address within the time that a machine may take to come up, or
  /// the machine can never come up as it was made.
  bool unreachable = false;
};

/// A machine that trials may be placed on, with its name as a host.
struct OfferedMachine {
  std::string name;
  Machine machine;
};

/// All functions may be called from several threads at once.
template <class A>
concept MachineAccess =
    requires(A& access, Cluster& cluster, const Machine& machine, const UpOptions& options,
             const std::vector<MachineReport>& reports, const std::vector<OfferedMachine>& machines) {
      /// Waits until the machine can be reached, and sets it up as the file says. Steps that were done before are not
      /// repeated. Errors are returned in the report.
      { access.set_up(cluster, machine, options) } -> std::same_as<MachineReport>;
      access.introduce(cluster, reports);  ///< lets the head of a cluster that is up reach the others
      access.clean(cluster, machine);      ///< removes what was installed on a host that continues to exist
      access.forget(cluster, machine);     ///< the machine no longer exists
      access.offer(cluster, machines);     ///< all current machines; called before an executor learns of them
    };

/// Holds any MachineAccess by value; copies share one object. A default-constructed one does nothing: machines then
/// need only an address.
class AnyAccess {
 public:
  AnyAccess() = default;
  template <class A>
    requires(!std::same_as<std::remove_cvref_t<A>, AnyAccess> && MachineAccess<std::decay_t<A>>)
  AnyAccess(A&& access)  // NOLINT: implicit on purpose
      : self_(std::make_shared<Holder<std::decay_t<A>>>(std::forward<A>(access))) {}

  MachineReport set_up(Cluster& cluster, const Machine& machine, const UpOptions& options) const;
  void introduce(Cluster& cluster, const std::vector<MachineReport>& reports) const {
    if (self_) self_->introduce(cluster, reports);
  }
  void clean(Cluster& cluster, const Machine& machine) const {
    if (self_) self_->clean(cluster, machine);
  }
  void forget(Cluster& cluster, const Machine& machine) const {
    if (self_) self_->forget(cluster, machine);
  }
  void offer(Cluster& cluster, const std::vector<OfferedMachine>& machines) const {
    if (self_) self_->offer(cluster, machines);
  }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual MachineReport set_up(Cluster&, const Machine&, const UpOptions&) = 0;
    virtual void introduce(Cluster&, const std::vector<MachineReport>&) = 0;
    virtual void clean(Cluster&, const Machine&) = 0;
    virtual void forget(Cluster&, const Machine&) = 0;
    virtual void offer(Cluster&, const std::vector<OfferedMachine>&) = 0;
  };
  template <class A>
  struct Holder final : Base {
    explicit Holder(A a) : access(std::move(a)) {}
    MachineReport set_up(Cluster& cluster, const Machine& machine, const UpOptions& options) override {
      return access.set_up(cluster, machine, options);
    }
    void introduce(Cluster& cluster, const std::vector<MachineReport>& reports) override {
      access.introduce(cluster, reports);
    }
    void clean(Cluster& cluster, const Machine& machine) override { access.clean(cluster, machine); }
    void forget(Cluster& cluster, const Machine& machine) override { access.forget(cluster, machine); }
    void offer(Cluster& cluster, const std::vector<OfferedMachine>& machines) override {
      access.offer(cluster, machines);
    }
    A access;
  };
  std::shared_ptr<Base> self_;
};

}  // namespace hypertune::inline v0::cluster
