// The built-in providers except Kubernetes: existing hosts, a program of the user, and AWS.
#pragma once

#include <hypertune/cluster/provider.hpp>

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace hypertune::inline v0::cluster {

/// Existing hosts. create() takes the next free host of the list, terminate() gives it back. The taken hosts are
/// recorded in `state`/local.json.
class LocalProvider {
 public:
  LocalProvider(const ClusterConfig& config, const std::filesystem::path& state);
  std::vector<Machine> list();
  Machine create(const LaunchRequest& request);
  void terminate(const std::vector<std::string>& ids);
  void stop(const std::vector<std::string>& ids);
  void start(const std::vector<std::string>& ids);
  std::optional<Resources> resources_of(const NodeType&) { return std::nullopt; }
  double listing_delay() const { return 0; }

 private:
  std::vector<Machine> read() const;
  void write(const std::vector<Machine>& machines) const;

  std::string head_;
  std::vector<std::string> workers_;
  std::filesystem::path file_;
  std::vector<std::string> tried_;  // hosts given back since the start: taken again only after the others
  std::shared_ptr<std::mutex> mutex_ = std::make_shared<std::mutex>();
};

/// A program of the user. It is run once per call, gets one JSON object on its standard input and writes one to its
/// standard output; README.md describes the protocol.
class CommandProvider {
 public:
  CommandProvider(const ClusterConfig& config, const std::filesystem::path& state);
  std::vector<Machine> list();
  Machine create(const LaunchRequest& request);
  void terminate(const std::vector<std::string>& ids);
  void stop(const std::vector<std::string>& ids);
  void start(const std::vector<std::string>& ids);
  std::optional<Resources> resources_of(const NodeType&) { return std::nullopt; }
  double listing_delay() const { return 0; }

 private:
  std::string call(const std::string& verb, const std::string& fields) const;
  void call_with_ids(const std::string& verb, const std::vector<std::string>& ids) const;

  std::string cluster_;
  std::vector<std::string> command_;
  std::string settings_;
  double timeout_;
  std::filesystem::path lock_, folder_;
};

/// EC2 through the AWS command line (`aws`, version 1 or 2), with its configuration, profiles and credentials.
class AwsProvider {
 public:
  /// URL on a spot machine that announces its interruption; returns 404 until then.
  static constexpr const char* notice_url = "http://169.254.169.254/latest/meta-data/spot/instance-action";

  AwsProvider(const ClusterConfig& config, const std::filesystem::path& state);
  std::vector<Machine> list();
  Machine create(const LaunchRequest& request);
  void terminate(const std::vector<std::string>& ids);
  void stop(const std::vector<std::string>& ids);
  void start(const std::vector<std::string>& ids);
  std::optional<Resources> resources_of(const NodeType& type);
  double listing_delay() const { return 15; }
  /// By the rules of the installed command line, without a call over the network.
  void check(const NodeType& type);

  /// The JSON argument of run-instances.
  std::string request_text(const LaunchRequest& request) const;

 private:
  std::string call(const std::vector<std::string>& arguments) const;
  std::string run_instances(const LaunchRequest& request, const std::vector<std::string>& more = {}) const;
  void call_with_ids(const std::string& verb, const std::vector<std::string>& ids) const;

  std::string cluster_;
  ProviderConfig config_;
  std::string public_key_;
  std::filesystem::path lock_;
};

/// Makes the provider that the file names. `state`: the cluster's folder for data that must be kept. Error of kind
/// `input` if there is no such provider.
AnyProvider make_provider(const ClusterConfig& config, const std::filesystem::path& state);

namespace detail {
/// The lock file that programs started by a provider hold while they run.
inline std::filesystem::path calls_lock(const std::filesystem::path& state) { return state / "provider.lock"; }
/// Classifies an error message of the AWS command line.
ProviderFailure aws_failure(const std::string& errors);
}  // namespace detail

}  // namespace hypertune::inline v0::cluster
