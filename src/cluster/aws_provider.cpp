// AwsProvider: machines of EC2, through the AWS command line.
#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/cluster/detail/files.hpp>
#include <hypertune/cluster/detail/json.hpp>
#include <hypertune/cluster/providers.hpp>
#include <hypertune/cluster/subprocess.hpp>

#include <fmt/format.h>

#include <functional>

namespace hypertune::inline v0::cluster {
namespace detail {

struct NoCommandLine : ProviderError {
  using ProviderError::ProviderError;
};

// "An error occurred (InvalidAMIID.NotFound) when calling the RunInstances operation: …"
static std::string aws_code(const std::string& errors) {
  constexpr std::string_view before = "An error occurred (";
  const auto at = errors.find(before);
  if (at == std::string::npos) return {};
  const auto begin = at + before.size();
  return errors.substr(begin, errors.find(')', begin) - begin);
}

static std::string aws_message(const std::string& errors) {
  const auto at = errors.find("An error occurred (");
  return excerpt(at == std::string::npos ? std::string_view(errors) : std::string_view(errors).substr(at), 400);
}

// Always the same choice for the same token: EC2 requires that a repeated request is identical.
static std::size_t choice_by(const std::string& token, std::size_t count) {
  return std::stoull(hypertune::detail::ContentHash::of(token).substr(16), nullptr, 16) % count;
}

ProviderFailure aws_failure(const std::string& errors) {
  const auto code = aws_code(errors);
  for (const char* known :
       {"InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientReservedInstanceCapacity",
        "InsufficientCapacity", "SpotMaxPriceTooLow", "MaxSpotInstanceCountExceeded", "InstanceLimitExceeded",
        "VcpuLimitExceeded", "MaxSpotFleetRequestCountExceeded", "Unsupported", "InsufficientFreeAddressesInSubnet"})
    if (code == known) return ProviderFailure::capacity;
  if (code == "IncorrectSpotRequestState" || code == "UnsupportedOperation") return ProviderFailure::unsupported;
  for (const char* start : {"Unauthorized", "AuthFailure", "Invalid", "Missing", "OptInRequired", "Validation",
                            "RequestExpired", "ExpiredToken", "AccessDenied", "UnrecognizedClient", "Blocked",
                            "IdempotentParameterMismatch", "PendingVerification"})
    if (code.starts_with(start)) return ProviderFailure::invalid;
  for (const char* said : {"Unable to locate credentials", "You must specify a region", "could not be found",
                           "Parameter validation failed", "Invalid endpoint", "Unknown options"})
    if (code.empty() && errors.find(said) != std::string::npos) return ProviderFailure::invalid;
  return ProviderFailure::failed;
}

static MachineState aws_state(std::string_view name) {
  if (name == "running") return MachineState::running;
  if (name == "stopping") return MachineState::stopping;
  if (name == "stopped") return MachineState::stopped;
  if (name == "shutting-down" || name == "terminated") return MachineState::terminated;
  return MachineState::pending;
}

static Machine aws_machine(const json::object& instance, bool internal) {
  Machine machine;
  machine.id = text_of(instance, "InstanceId");
  if (const auto* state = object_in(instance, "State")) machine.state = aws_state(text_of(*state, "Name"));
  if (!internal) machine.address = text_of(instance, "PublicDnsName");
  if (!internal && machine.address.empty()) machine.address = text_of(instance, "PublicIpAddress");
  if (machine.address.empty()) machine.address = text_of(instance, "PrivateIpAddress");
  if (!is_plain_name(machine.address)) machine.address.clear();
  machine.spot = text_of(instance, "InstanceLifecycle") == "spot";
  each_object(instance, "Tags", [&](const json::object& tag) {
    const auto key = text_of(tag, "Key"), value = text_of(tag, "Value");
    if (key == tag_token) machine.token = value;
    if (key == tag_type) machine.node_type = value;
    if (key == tag_role) machine.head = value == "head";
  });
  return machine;
}

}  // namespace detail

AwsProvider::AwsProvider(const ClusterConfig& config, const std::filesystem::path& state)
    : cluster_(config.name), config_(config.provider), lock_(detail::calls_lock(state)) {
  auto file = config.auth.ssh_public_key;
  if (file.empty() && !config.auth.ssh_private_key.empty()) file = config.auth.ssh_private_key.string() + ".pub";
  if (file.empty()) return;
  if (auto key = detail::read_file(file)) {
    public_key_ = key->substr(0, key->find('\n'));
  } else if (!config.auth.ssh_public_key.empty()) {
    fail(Errc::input, "auth.ssh_public_key: '{}' cannot be read", file.string());
  }
}

std::string AwsProvider::call(const std::vector<std::string>& arguments) const {
  std::vector<std::string> words{"aws", "ec2"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.insert(words.end(), {"--output", "json"});
  if (!config_.region.empty()) words.insert(words.end(), {"--region", config_.region});
  if (!config_.endpoint_url.empty()) words.insert(words.end(), {"--endpoint-url", config_.endpoint_url});
  if (!config_.profile.empty()) words.insert(words.end(), {"--profile", config_.profile});
  process::RunOptions options{
      .spawn = holding(lock_), .deadline = config_.timeout, .max_output = SIZE_MAX, .max_kept = std::size_t{64} << 20U};
  options.spawn.environment = {{"AWS_PAGER", ""}, {"AWS_CLI_AUTO_PROMPT", "off"}};
  process::Collected result;
  try {
    result = process::collect(words, std::move(options));
  } catch (const Error& error) {
    throw detail::NoCommandLine(
        ProviderFailure::invalid,
        fmt::format("the aws provider needs the AWS command line, version 1 or 2: {}", error.what()));
  }
  if (result.ok()) return result.out;
  const auto& verb = arguments.front();
  if (result.late)
    throw ProviderError(ProviderFailure::failed,
                        fmt::format("'aws ec2 {}' did not answer within {:g} s", verb, config_.timeout));
  throw ProviderError(detail::aws_failure(result.err),
                      fmt::format("'aws ec2 {}' failed: {}", verb,
                                  result.err.empty() ? why_failed(result) : detail::aws_message(result.err)));
}

std::vector<Machine> AwsProvider::list() {
  const auto text =
      call({"describe-instances", "--filters", fmt::format("Name=tag:{},Values={}", tag_cluster, cluster_),
            "Name=instance-state-name,Values=pending,running,stopping,stopped"});
  const auto answer = detail::parse_json(text);
  if (!answer || detail::array_in(*answer, "Reservations") == nullptr)
    throw ProviderError(
        ProviderFailure::failed,
        fmt::format("'aws ec2 describe-instances' answered what cannot be read: '{}'", detail::excerpt(text)));
  std::vector<Machine> machines;
  detail::each_object(answer->get_object(), "Reservations", [&](const detail::json::object& reservation) {
    detail::each_object(reservation, "Instances", [&](const detail::json::object& instance) {
      auto machine = detail::aws_machine(instance, config_.use_internal_ips);
      if (machine.state != MachineState::terminated) machines.push_back(std::move(machine));
    });
  });
  return machines;
}

std::string AwsProvider::request_text(const LaunchRequest& request) const {
  namespace json = detail::json;
  auto parsed = detail::parse_json(request.node_config);
  json::object body = parsed && parsed->is_object() ? parsed->get_object() : json::object();
  const auto image = detail::text_of(body, "ImageId");
  const bool by_template = body.contains("LaunchTemplate");
  if (!by_template && (image.empty() || image == "latest_dlami"))
    throw ProviderError(
        ProviderFailure::invalid,
        fmt::format("node type '{}': node_config.ImageId must name an image: ami-…, or resolve:ssm:… for "
                    "the newest of a kind",
                    request.node_type));
  if (const auto* launch = detail::object_in(body, "LaunchTemplate")) {
    const auto* version = launch->if_contains("Version");
    if (version != nullptr && version->is_number())
      throw ProviderError(
          ProviderFailure::invalid,
          fmt::format("node type '{}': node_config.LaunchTemplate.Version must be a text: write \"{}\", in quotes",
                      request.node_type, json::serialize(*version)));
  }
  for (const char* own : {"resources", "price", "spot"}) body.erase(own);  // hypertune's own, in the file's old form
  body["MinCount"] = 1;
  body["MaxCount"] = 1;
  body["ClientToken"] = request.token;
  if (const auto* subnets = body.if_contains("SubnetIds"); subnets != nullptr && subnets->is_array()) {
    const auto& list = subnets->get_array();
    json::value chosen = list.empty() ? json::value(nullptr) : list[detail::choice_by(request.token, list.size())];
    body.erase("SubnetIds");
    if (!chosen.is_null()) body["SubnetId"] = std::move(chosen);
  }
  if (!config_.availability_zones.empty() && !body.contains("SubnetId") && !body.contains("NetworkInterfaces")) {
    if (!body["Placement"].is_object()) body["Placement"] = json::object();
    auto& placement = body["Placement"].get_object();
    if (!placement.contains("AvailabilityZone"))
      placement["AvailabilityZone"] =
          config_.availability_zones[detail::choice_by(request.token, config_.availability_zones.size())];
  }
  if (!request.spot)
    body.erase("InstanceMarketOptions");
  else if (!body.contains("InstanceMarketOptions"))
    body["InstanceMarketOptions"] = {{"MarketType", "spot"}};
  if (!public_key_.empty() && !body.contains("KeyName") && !body.contains("UserData"))
    body["UserData"] = fmt::format("#cloud-config\nssh_authorized_keys:\n  - {}\n", public_key_);
  json::array tags;
  const auto tag = [&](std::string_view key, const std::string& value) {
    tags.push_back({{"Key", json::string_view(key.data(), key.size())}, {"Value", value}});
  };
  tag("Name", fmt::format("hypertune-{}-{}", cluster_, request.head ? "head" : "worker"));
  tag(tag_cluster, cluster_);
  tag(tag_token, request.token);
  tag(tag_type, request.node_type);
  tag(tag_role, request.head ? "head" : "worker");
  tag(tag_market, request.spot ? "spot" : "on-demand");
  json::array specifications;
  bool added = false;
  if (const auto* given = body.if_contains("TagSpecifications"); given != nullptr && given->is_array())
    for (auto specification : given->get_array()) {
      if (specification.is_object() && detail::text_of(specification.get_object(), "ResourceType") == "instance") {
        auto& all = specification.get_object()["Tags"];
        if (!all.is_array()) all = json::array();
        for (const auto& own : tags) {
          bool hidden = false;
          for (const auto& theirs : all.get_array())
            hidden = hidden || (theirs.is_object() && detail::text_of(theirs.get_object(), "Key") == "Name" &&
                                detail::text_of(own.get_object(), "Key") == "Name");
          if (!hidden) all.get_array().push_back(own);
        }
        added = true;
      }
      specifications.push_back(std::move(specification));
    }
  if (!added) specifications.push_back({{"ResourceType", "instance"}, {"Tags", tags}});
  body["TagSpecifications"] = std::move(specifications);
  return json::serialize(body);
}

std::string AwsProvider::run_instances(const LaunchRequest& request, const std::vector<std::string>& more) const {
  // Passed in a temporary file: user data may contain secrets, and all users of this machine can read command lines.
  detail::TemporaryFile input;
  input.write(request_text(request));
  std::vector<std::string> arguments{"run-instances", "--cli-input-json", "file://" + input.path().string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return call(arguments);
}

void AwsProvider::check(const NodeType& type) {
  LaunchRequest request;
  request.token = "0123456789abcdef0123456789abcdef";
  request.node_type = type.name;
  request.node_config = type.node_config;
  request.spot = type.spot != Spot::never;
  static_cast<void>(request_text(request));  // by the rules here, also where there is no command line
  try {
    // It checks the keys and types of the request, and answers an example without sending anything.
    run_instances(request, {"--generate-cli-skeleton", "output"});
  } catch (const detail::NoCommandLine&) {  // nothing can be made here, but perhaps elsewhere
  } catch (const ProviderError& error) {
    if (error.kind() != ProviderFailure::invalid) return;  // it is another version, perhaps
    throw ProviderError(ProviderFailure::invalid, fmt::format("node type '{}': {}", type.name, error.what()));
  }
}

Machine AwsProvider::create(const LaunchRequest& request) {
  const auto text = run_instances(request);
  const auto answer = detail::parse_json(text);
  const auto* instances = answer ? detail::array_in(*answer, "Instances") : nullptr;
  if (instances == nullptr || instances->empty() || !instances->front().is_object())
    throw ProviderError(
        ProviderFailure::failed,
        fmt::format("'aws ec2 run-instances' answered what cannot be read: '{}'", detail::excerpt(text)));
  auto machine = detail::aws_machine(instances->front().get_object(), config_.use_internal_ips);
  machine.token = request.token;
  machine.node_type = request.node_type;
  machine.head = request.head;
  machine.spot = request.spot;
  return machine;
}

void AwsProvider::call_with_ids(const std::string& verb, const std::vector<std::string>& ids) const {
  if (ids.empty()) return;
  std::vector<std::string> arguments{verb, "--instance-ids"};
  arguments.insert(arguments.end(), ids.begin(), ids.end());
  try {
    call(arguments);
  } catch (const ProviderError& error) {
    // An instance that no longer exists must not prevent the termination of the others.
    if (std::string_view(error.what()).find("InvalidInstanceID") == std::string_view::npos) throw;
    if (ids.size() == 1) return;
    for (const auto& id : ids) call_with_ids(verb, {id});
  }
}
void AwsProvider::terminate(const std::vector<std::string>& ids) { call_with_ids("terminate-instances", ids); }
void AwsProvider::stop(const std::vector<std::string>& ids) { call_with_ids("stop-instances", ids); }
void AwsProvider::start(const std::vector<std::string>& ids) { call_with_ids("start-instances", ids); }

std::optional<Resources> AwsProvider::resources_of(const NodeType& type) {
  const auto config = detail::parse_json(type.node_config);
  const auto name =
      config && config->is_object() ? detail::text_of(config->get_object(), "InstanceType") : std::string();
  if (!detail::is_plain_name(name)) return std::nullopt;
  const auto answer = detail::parse_json(call({"describe-instance-types", "--instance-types", name}));
  const auto* types = answer ? detail::array_in(*answer, "InstanceTypes") : nullptr;
  if (types == nullptr || types->empty() || !types->front().is_object()) return std::nullopt;
  const auto& found = types->front().get_object();
  Resources resources;
  if (const auto* cpus = detail::object_in(found, "VCpuInfo"))
    resources.cpus = detail::number_in(*cpus, "DefaultVCpus", 1);
  if (const auto* memory = detail::object_in(found, "MemoryInfo"))
    resources.memory = detail::bytes_of(detail::number_in(*memory, "SizeInMiB"), 20);
  if (const auto* gpus = detail::object_in(found, "GpuInfo"))
    detail::each_object(*gpus, "Gpus", [&](const auto& gpu) { resources.gpus += detail::number_in(gpu, "Count"); });
  return resources;
}

}  // namespace hypertune::inline v0::cluster
