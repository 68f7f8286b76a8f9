// CommandProvider: machines made by a program of the user.
#include <hypertune/cluster/detail/json.hpp>
#include <hypertune/cluster/providers.hpp>
#include <hypertune/cluster/subprocess.hpp>
#include <hypertune/record/detail/json_writer.hpp>

#include <fmt/format.h>

#include <cmath>

namespace hypertune::inline v0::cluster {
namespace detail {

// Parses a machine as the program describes it; nullopt if it belongs to another cluster.
static std::optional<Machine> machine_of(const json::value& value, const std::string& cluster,
                                         const std::string& program) {
  const auto bad = [&](const std::string& what) {
    throw ProviderError(ProviderFailure::failed, fmt::format("the provider '{}' answered with a machine {}: '{}'",
                                                             program, what, excerpt(json::serialize(value))));
  };
  if (!value.is_object()) bad("that is no object");
  const auto& object = value.get_object();
  Machine machine;
  machine.id = text_of(object, "id");
  if (!is_plain_name(machine.id)) bad("without an id of printable letters");
  const auto* tags = object_in(object, "tags");
  if (tags == nullptr || text_of(*tags, tag_cluster) != cluster) return std::nullopt;
  machine.token = text_of(*tags, tag_token);
  machine.node_type = text_of(*tags, tag_type);
  machine.head = text_of(*tags, tag_role) == "head";
  machine.spot = text_of(*tags, tag_market) == "spot";
  const auto state = text_of(object, "state");
  bool known = false;
  for (const auto candidate : {MachineState::pending, MachineState::running, MachineState::stopping,
                               MachineState::stopped, MachineState::terminated})
    if (state == to_string(candidate)) {
      machine.state = candidate;
      known = true;
    }
  if (!known) bad("whose state is none of pending, running, stopping, stopped, terminated");
  machine.address = text_of(object, "address");
  if (!machine.address.empty() && (!is_plain_name(machine.address) || machine.address.find('@') != std::string::npos))
    bad("whose address is no host name");
  const double port = number_in(object, "port");
  if (!(port >= 0 && port <= 65535 && port == std::floor(port))) bad("whose port is none");
  machine.port = static_cast<int>(port);
  if (const auto* keys = array_in(object, "host_keys"))
    for (const auto& key : *keys) {
      if (!key.is_string() || std::string_view(key.get_string()).find('\n') != std::string_view::npos)
        bad("whose host_keys are no lines of text");
      machine.host_keys.emplace_back(key.get_string().data(), key.get_string().size());
    }
  return machine;
}

}  // namespace detail

CommandProvider::CommandProvider(const ClusterConfig& config, const std::filesystem::path& state)
    : cluster_(config.name),
      command_(config.provider.command),
      settings_(config.provider.settings),
      timeout_(config.provider.timeout),
      lock_(detail::calls_lock(state)),
      folder_(config.file.parent_path()) {}

std::string CommandProvider::call(const std::string& verb, const std::string& fields) const {
  hypertune::detail::JsonWriter request;
  request.begin_object().member("version", 1).member("verb", verb).member("cluster", cluster_);
  const auto input = request.key("settings").raw(settings_ + fields).end_object().white("\n").take();
  process::RunOptions options{.spawn = holding(lock_),
                              .input = process::whole(input),
                              .deadline = timeout_,
                              .max_output = SIZE_MAX,
                              .max_kept = std::size_t{8} << 20U};
  options.spawn.environment["HYPERTUNE_CLUSTER"] = cluster_;
  const auto program = command_.front();
  const auto fail_with = [&](ProviderFailure kind, const std::string& what) {
    throw ProviderError(kind, fmt::format("the provider '{}', asked to {}, {}", program, verb, what));
  };
  process::Collected result;
  try {
    result = process::collect(command_, std::move(options));
  } catch (const Error& error) {
    throw ProviderError(ProviderFailure::invalid, fmt::format("provider.command: {}", error.what()));
  }
  if (result.late)
    fail_with(ProviderFailure::failed,
              fmt::format("did not answer within {:g} s and was ended (provider.timeout)", timeout_));
  const auto answer = detail::parse_json(result.out);
  const auto* object = answer && answer->is_object() ? &answer->get_object() : nullptr;
  if (object != nullptr) {
    if (const auto* error = object->if_contains("error")) {
      std::string kind, message;
      if (error->is_object()) {
        kind = detail::text_of(error->get_object(), "kind");
        message = detail::text_of(error->get_object(), "message");
      } else if (error->is_string()) {
        message = std::string(error->get_string().data(), error->get_string().size());
      }
      if (message.empty()) message = "it gave no message";
      fail_with(kind == "capacity"      ? ProviderFailure::capacity
                : kind == "invalid"     ? ProviderFailure::invalid
                : kind == "unsupported" ? ProviderFailure::unsupported
                                        : ProviderFailure::failed,
                "failed: " + detail::excerpt(message, 400));
    }
  }
  if (!result.ok()) fail_with(ProviderFailure::failed, why_failed(result));
  if (object == nullptr)
    fail_with(ProviderFailure::failed, result.out.empty() ? "answered nothing: it must print one JSON object"
                                                          : fmt::format("answered with what is no JSON object: '{}'",
                                                                        detail::excerpt(result.out)));
  return result.out;
}

std::vector<Machine> CommandProvider::list() {
  const auto answer = detail::parse_json(call("list", ""));
  const auto* machines = detail::array_in(*answer, "machines");
  if (machines == nullptr)
    throw ProviderError(
        ProviderFailure::failed,
        fmt::format("the provider '{}', asked to list, answered without a list 'machines'", command_.front()));
  std::vector<Machine> found;
  for (const auto& entry : *machines) {
    auto machine = detail::machine_of(entry, cluster_, command_.front());
    if (machine && machine->state != MachineState::terminated) found.push_back(std::move(*machine));
  }
  return found;
}

Machine CommandProvider::create(const LaunchRequest& request) {
  namespace json = detail::json;
  const json::object tags{
      {json::string_view(tag_cluster.data(), tag_cluster.size()), cluster_},
      {json::string_view(tag_token.data(), tag_token.size()), request.token},
      {json::string_view(tag_type.data(), tag_type.size()), request.node_type},
      {json::string_view(tag_role.data(), tag_role.size()), request.head ? "head" : "worker"},
      {json::string_view(tag_market.data(), tag_market.size()), request.spot ? "spot" : "on-demand"}};
  const json::value type(request.node_type);
  const auto text =
      call("create", fmt::format(R"(,"token":"{}","node_type":{},"spot":{},"node_config":{},"tags":{})", request.token,
                                 json::serialize(type), request.spot, request.node_config, json::serialize(tags)));
  const auto answer = detail::parse_json(text);
  const auto& object = answer->get_object();
  const auto* one = object.if_contains("machine");
  if (const auto* several = object.if_contains("machines");
      one == nullptr && several != nullptr && several->is_array() && several->get_array().size() == 1)
    one = &several->get_array().front();
  if (one == nullptr)
    throw ProviderError(ProviderFailure::failed,
                        fmt::format("the provider '{}', asked to create, answered without 'machine': '{}'",
                                    command_.front(), detail::excerpt(text)));
  json::value described = *one;
  if (described.is_object() && !described.get_object().contains("tags")) described.get_object()["tags"] = tags;
  auto machine = detail::machine_of(described, cluster_, command_.front());
  if (!machine || (!machine->token.empty() && machine->token != request.token))
    throw ProviderError(ProviderFailure::failed,
                        fmt::format("the provider '{}', asked to create, answered with another cluster's machine: '{}'",
                                    command_.front(), detail::excerpt(text)));
  machine->token = request.token;
  return *machine;
}

void CommandProvider::call_with_ids(const std::string& verb, const std::vector<std::string>& ids) const {
  if (ids.empty()) return;
  detail::json::array list;
  for (const auto& id : ids) list.emplace_back(id);
  call(verb, ",\"ids\":" + detail::json::serialize(list));
}
void CommandProvider::terminate(const std::vector<std::string>& ids) { call_with_ids("terminate", ids); }
void CommandProvider::stop(const std::vector<std::string>& ids) { call_with_ids("stop", ids); }
void CommandProvider::start(const std::vector<std::string>& ids) { call_with_ids("start", ids); }

}  // namespace hypertune::inline v0::cluster
