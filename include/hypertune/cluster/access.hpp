// MachineAccess: how a cluster's machines are logged in to and made ready for trials.
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
  bool no_restart = false;    ///< machines that were set up before are left as they are, whatever has changed
  bool restart_only = false;  ///< no commands of the file are run
};

/// What became of one machine.
struct MachineReport {
  Machine machine;
  std::string error;  ///< empty: it is set up
  std::optional<Resources> resources;
  /// With an error: it had an address, and nothing answered there for as long as a machine may take to come up; or it
  /// cannot come up as it was made.
  bool unreachable = false;
};

/// A machine that trials may be placed on, by its name as a host.
struct OfferedMachine {
  std::string name;
  Machine machine;
};

/// All calls may come from several threads at once.
template <class A>
concept MachineAccess =
    requires(A& access, Cluster& cluster, const Machine& machine, const UpOptions& options,
             const std::vector<MachineReport>& reports, const std::vector<OfferedMachine>& machines) {
      /// Waits until it can be reached, and does what the file says is to be done to it. Nothing is done twice. Errors
      /// are in the report.
      { access.set_up(cluster, machine, options) } -> std::same_as<MachineReport>;
      access.introduce(cluster, reports);  ///< lets the head of a cluster that is up reach the others
      access.clean(cluster, machine);      ///< takes away what was made on a host that goes on existing
      access.forget(cluster, machine);     ///< the machine is gone
      access.offer(cluster, machines);     ///< before an executor hears of them: all that there are now
    };

/// Any MachineAccess, by value; copies are the same one. By default none: machines need no more than an address.
class AnyAccess {
 public:
  AnyAccess() = default;
  template <class A>
    requires(!std::same_as<std::remove_cvref_t<A>, AnyAccess> && MachineAccess<std::decay_t<A>>)
  AnyAccess(A&& access)  // NOLINT: any access is one
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
