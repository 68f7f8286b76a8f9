// The Provider concept: a source of machines.
#pragma once

#include <hypertune/cluster/config.hpp>
#include <hypertune/cluster/machine.hpp>
#include <hypertune/trial/resources.hpp>

#include <concepts>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::cluster {

/// A Provider creates and terminates the machines of one cluster. Requirements:
/// - list() returns every machine of the cluster that is not terminated, whatever process made it, with its tags.
/// - create() makes at most one machine per token, however often it is called; list() contains it from then on.
/// - terminate(), stop() and start() may be repeated; ids that do not exist (any more) are not errors.
/// - Every call ends within the configured timeout. Errors are ProviderErrors.
/// - Calls may come from several threads at once.
/// Optional: `std::string explain(const std::string& id)` tells how a machine ended after list() has dropped it, and
/// `void clear()` removes what is left of the cluster when list() is empty. `void check(const NodeType&)` throws a
/// ProviderError of kind `invalid` if create() would refuse machines of this type for what the file says of them; it
/// makes nothing, and asks nobody over the network.
template <class P>
concept Provider =
    requires(P& provider, const LaunchRequest& request, const std::vector<std::string>& ids, const NodeType& type) {
      { provider.list() } -> std::same_as<std::vector<Machine>>;
      { provider.create(request) } -> std::same_as<Machine>;
      provider.terminate(ids);
      provider.stop(ids);
      provider.start(ids);
      { provider.resources_of(type) } -> std::same_as<std::optional<Resources>>;  ///< nullopt: not known
      {
        provider.listing_delay()
      } -> std::convertible_to<double>;  ///< maximum delay, in seconds, before list() contains what create() made
    };

/// Holds any Provider by value; copies share one object.
class AnyProvider {
 public:
  template <class P>
    requires(!std::same_as<P, AnyProvider> && Provider<P>)
  AnyProvider(P provider) : self_(std::make_shared<Holder<P>>(std::move(provider))) {}  // NOLINT: implicit on purpose

  std::vector<Machine> list() { return self_->list(); }
  Machine create(const LaunchRequest& request) { return self_->create(request); }
  void terminate(const std::vector<std::string>& ids) { self_->terminate(ids); }
  void stop(const std::vector<std::string>& ids) { self_->stop(ids); }
  void start(const std::vector<std::string>& ids) { self_->start(ids); }
  std::optional<Resources> resources_of(const NodeType& type) { return self_->resources_of(type); }
  double listing_delay() { return self_->listing_delay(); }
  /// How a machine ended; empty: not known.
  std::string explain(const std::string& id) { return self_->explain(id); }
  void clear() { self_->clear(); }
  void check(const NodeType& type) { self_->check(type); }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual std::vector<Machine> list() = 0;
    virtual Machine create(const LaunchRequest&) = 0;
    virtual void terminate(const std::vector<std::string>&) = 0;
    virtual void stop(const std::vector<std::string>&) = 0;
    virtual void start(const std::vector<std::string>&) = 0;
    virtual std::optional<Resources> resources_of(const NodeType&) = 0;
    virtual double listing_delay() = 0;
    virtual std::string explain(const std::string&) = 0;
    virtual void clear() = 0;
    virtual void check(const NodeType&) = 0;
  };
  template <class P>
  struct Holder final : Base {
    explicit Holder(P p) : provider(std::move(p)) {}
    std::vector<Machine> list() override { return provider.list(); }
    Machine create(const LaunchRequest& request) override { return provider.create(request); }
    void terminate(const std::vector<std::string>& ids) override { provider.terminate(ids); }
    void stop(const std::vector<std::string>& ids) override { provider.stop(ids); }
    void start(const std::vector<std::string>& ids) override { provider.start(ids); }
    std::optional<Resources> resources_of(const NodeType& type) override { return provider.resources_of(type); }
    double listing_delay() override { return provider.listing_delay(); }
    std::string explain(const std::string& id) override {
      if constexpr (requires { provider.explain(id); })
        return provider.explain(id);
      else
        return {};
    }
    void clear() override {
      if constexpr (requires { provider.clear(); }) provider.clear();
    }
    void check(const NodeType& type) override {
      if constexpr (requires { provider.check(type); }) provider.check(type);
    }
    P provider;
  };
  std::shared_ptr<Base> self_;
};

}  // namespace hypertune::inline v0::cluster
