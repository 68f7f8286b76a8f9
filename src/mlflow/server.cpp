#include "server.hpp"

#include <hypertune/detail/parse_number.hpp>
#include <hypertune/record/json_text.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <utility>

namespace hypertune::inline v0::detail::mlflow {

namespace {

namespace json = boost::json;

std::string json_text(std::string_view text) {
  std::string out;
  append_json(out, text);
  return out;
}

// A text that the answer must have.
std::string text_at(const json::value& value, const char* pointer) {
  boost::system::error_code missing;
  const auto* found = value.find_pointer(pointer, missing);
  if (found == nullptr || !found->is_string())
    throw Refused(200, fmt::format("its answer has no {}: is it an MLflow server?", pointer));
  return std::string(found->as_string());
}

const char* trial_tag = "hypertune.trial";
const char* identity_tag = "hypertune.id";

}  // namespace

Server::Server(const MlflowOptions& options, std::string authorization)
    : http_(Address(options.uri), std::move(authorization)) {}

json::value Server::call(std::string_view method, const std::string& body) {
  const Answer answer = http_.request(fmt::format("/api/2.0/mlflow/{}", method), body, limit_());
  boost::system::error_code wrong;
  json::value value = json::parse(answer.body, wrong);
  constexpr unsigned not_implemented = 501;  // and will not be later
  if (answer.status == 408 || answer.status == 429 || (answer.status >= 500 && answer.status != not_implemented))
    throw Unreachable(fmt::format("it answered {}", answer.status));
  if (answer.status != 200) {
    std::string text;
    if (!wrong && value.is_object() && value.as_object().contains("message"))
      text = std::string(
          value.as_object().at("message").is_string() ? value.as_object().at("message").as_string().c_str() : "");
    constexpr std::size_t most = 300;
    throw Refused(answer.status, text.empty() ? fmt::format("status {}", answer.status) : cut(text, most));
  }
  if (wrong) throw Refused(answer.status, "its answer is no JSON: is it an MLflow server?");
  return value;
}

bool Server::open(const std::string& experiment, const std::string& identity) {
  identity_ = identity;
  const auto find = [&]() -> std::string {
    std::string encoded;
    for (const char c : experiment) encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    const auto found = call("experiments/get-by-name?experiment_name=" + encoded, "");
    if (text_at(found, "/experiment/lifecycle_stage") == "deleted")
      throw Refused(200, fmt::format("its experiment '{}' was deleted: restore it, or name another one", experiment));
    return text_at(found, "/experiment/experiment_id");
  };
  std::string id;
  try {
    id = find();
  } catch (const Refused& refused) {
    if (refused.status != 404) throw;
    try {
      id =
          text_at(call("experiments/create", fmt::format("{{\"name\": {}}}", json_text(experiment))), "/experiment_id");
    } catch (const Refused& also) {
      if (also.status != 400) throw;
      id = find();  // another client has just created it
    }
  }
  experiment_ = id;
  try {
    find_runs();
  } catch (...) {
    close();
    throw;
  }
  return runs_.contains(parent_run);
}

void Server::find_runs() {
  runs_.clear();
  std::string page;
  do {
    const std::string body =
        fmt::format("{{\"experiment_ids\": [{}], \"max_results\": 1000, \"filter\": {}{}}}", json_text(experiment_),
                    json_text(fmt::format("tags.`{}` = '{}'", identity_tag, identity_)),
                    page.empty() ? "" : ", \"page_token\": " + json_text(page));
    const json::value found = call("runs/search", body);
    page.clear();
    if (const auto* next = found.as_object().if_contains("next_page_token"); next != nullptr && next->is_string())
      page = std::string(next->as_string());
    const auto* runs = found.as_object().if_contains("runs");
    if (runs == nullptr || !runs->is_array()) break;
    for (const auto& run : runs->as_array()) {
      boost::system::error_code missing;
      const auto* tags = run.find_pointer("/data/tags", missing);
      if (tags == nullptr || !tags->is_array()) continue;
      for (const auto& tag : tags->as_array()) {
        if (text_at(tag, "/key") != trial_tag) continue;
        const auto trial = detail::parse_number<TrialId>(text_at(tag, "/value")).value_or(parent_run);
        runs_.try_emplace(trial, text_at(run, "/info/run_id"));
      }
    }
  } while (!page.empty());
}

const std::string& Server::run_of(TrialId trial, const RunUpdate& update) {
  if (const auto found = runs_.find(trial); found != runs_.end()) return found->second;
  std::string body = fmt::format("{{\"experiment_id\": {}, \"run_name\": {}, \"start_time\": {}, \"tags\": [",
                                 json_text(experiment_), json_text(update.name), update.created);
  const auto tag = [&](const char* name, const std::string& value, const char* separator) {
    body += fmt::format("{}{{\"key\": \"{}\", \"value\": {}}}", separator, name, json_text(value));
  };
  tag(identity_tag, identity_, "");
  tag(trial_tag, trial == parent_run ? "experiment" : fmt::to_string(trial), ", ");
  if (trial != parent_run)
    if (const auto parent = runs_.find(parent_run); parent != runs_.end())
      tag("mlflow.parentRunId", parent->second, ", ");
  body += "]}";
  return runs_.emplace(trial, text_at(call("runs/create", body), "/run/info/run_id")).first->second;
}

void Server::send(TrialId trial, const RunUpdate& update) {
  const std::string& run = run_of(trial, update);
  for (const auto& body : log_batches(run, update)) call("runs/log-batch", body);
  if (update.status.empty()) return;
  std::string body = fmt::format("{{\"run_id\": {}, \"status\": \"{}\"", json_text(run), update.status);
  if (update.ended) body += fmt::format(", \"end_time\": {}", *update.ended);
  call("runs/update", body += '}');
}

}  // namespace hypertune::inline v0::detail::mlflow
