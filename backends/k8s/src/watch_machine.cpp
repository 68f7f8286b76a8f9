// Part of hypertune::k8s.
#include "watch_machine.hpp"

#include "status.hpp"

#include <hypertune/error.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace hypertune::inline v0::k8s::detail {

namespace json = boost::json;

namespace {

/// Identity of an API object. Error of kind `protocol` if it lacks metadata that every object has.
struct Identity {
  explicit Identity(const json::object& object) {
    metadata = object_in(object, "metadata");
    if (metadata == nullptr) fail(Errc::protocol, "an object without metadata");
    name = text_in(*metadata, "name");
    name_space = text_in(*metadata, "namespace");
    uid = text_in(*metadata, "uid");
    version = text_in(*metadata, "resourceVersion");
    if (name.empty() || version.empty()) fail(Errc::protocol, "an object without a name or resourceVersion");
  }
  std::string key() const { return fmt::format("{}/{}", name_space, name); }

  const json::object* metadata;
  std::string_view name, name_space, uid, version;
};

json::value parsed_or_error(std::string_view text, const json::storage_ptr& storage) {
  auto value = parse_json(text, storage);
  if (!value) fail(Errc::protocol, "what is no JSON: '{}'", one_line(text, 60));
  return *std::move(value);
}

}  // namespace

WatchMachine::WatchMachine(WatchOptions options, WatchHandler handler)
    : options_(std::move(options)), handler_(std::move(handler)), back_off_(0.2, options_.max_backoff) {}

void WatchMachine::emit(const WatchEvent& event) {
  if (!handler_) return;
  try {
    handler_(event);
  } catch (const std::exception& e) {
    if (event.kind != Kind::trouble) trouble(0, e.what());
  }
}

void WatchMachine::trouble(int status, std::string_view text) {
  troubled_ = true;
  emit({.kind = Kind::trouble, .status = status, .text = text});
}

void WatchMachine::recovered() {
  if (std::exchange(troubled_, false)) emit({.kind = Kind::synced});
}

void WatchMachine::list_again() {
  version_.clear();
  continue_.clear();
  partial_.clear();
  ++list_number_;
  stream_wanted_ = false;
}

WatchMachine::Action WatchMachine::next(double uniform) {
  if (std::exchange(pause_due_, false)) {
    double pause = back_off_.pause(uniform);
    if (retry_after_) pause = std::min(*retry_after_, options_.max_backoff) + pause * 0.5;
    retry_after_.reset();
    return {.kind = Action::Kind::pause, .seconds = pause};
  }
  Action action;
  if (!options_.label_selector.empty()) action.query.emplace_back("labelSelector", options_.label_selector);
  if (!options_.field_selector.empty()) action.query.emplace_back("fieldSelector", options_.field_selector);
  if (version_.empty()) {
    if (expired_lists_ < 2) action.query.emplace_back("limit", std::to_string(options_.page));
    if (!continue_.empty()) action.query.emplace_back("continue", continue_);
    return action;
  }
  // Add jitter, so that not all clients reconnect in the same second.
  const auto seconds = static_cast<std::uint64_t>(std::max(1.0, options_.stream * (0.8 + 0.2 * uniform)));
  action.kind = Action::Kind::stream;
  action.seconds = static_cast<double>(seconds) + 30;
  action.query.emplace_back("watch", "1");
  action.query.emplace_back("allowWatchBookmarks", "true");
  action.query.emplace_back("resourceVersion", version_);
  action.query.emplace_back("timeoutSeconds", std::to_string(seconds));
  partial_.clear();
  stream_wanted_ = true;
  heard_ = false;
  return action;
}

void WatchMachine::listed(std::string_view body) {
  try {
    json::monotonic_resource memory;
    const json::value list = parsed_or_error(body, &memory);
    const auto* metadata = object_in(list, "metadata");
    const auto* object = list.if_object();
    const auto* items = object != nullptr ? object->if_contains("items") : nullptr;
    if (metadata == nullptr || items == nullptr || (!items->is_array() && !items->is_null()))
      fail(Errc::protocol, "a list without metadata and items");
    const std::string version(text_in(*metadata, "resourceVersion"));
    if (version.empty()) fail(Errc::protocol, "a list without resourceVersion");
    if (const auto* array = items->if_array())
      for (const auto& item : *array) {
        if (!item.is_object()) fail(Errc::protocol, "a list with an item that is no object");
        changed(Kind::modified, item.get_object());
      }
    continue_ = text_in(*metadata, "continue");
    if (!continue_.empty()) return;
    for (auto at = known_.begin(); at != known_.end();) {
      if (at->second.seen == list_number_) {
        ++at;
        continue;
      }
      const auto node = known_.extract(at++);
      gone(node.key(), node.mapped());
    }
    version_ = version;
    expired_lists_ = 0;
    ++list_number_;
    troubled_ = false;
    emit({.kind = Kind::synced});
  } catch (const Error& e) {
    list_again();
    pause_later();
    trouble(0, fmt::format("the API server sent {}", e.what()));
  }
}

void WatchMachine::streaming() { recovered(); }

bool WatchMachine::feed(std::string_view bytes) {
  while (stream_wanted_ && !bytes.empty()) {
    const auto end = bytes.find('\n');
    const std::size_t more = std::min(end, bytes.size());
    if (partial_.size() + more > options_.max_event) {
      list_again();
      pause_later();
      trouble(0, fmt::format("the API server sent an event of more than {} bytes", options_.max_event));
      break;
    }
    if (end == std::string_view::npos) {
      partial_ += bytes;
      break;
    }
    if (partial_.empty()) {
      line(bytes.substr(0, end));
    } else {
      partial_ += bytes.substr(0, end);
      const std::string whole = std::exchange(partial_, {});
      line(whole);
    }
    bytes.remove_prefix(end + 1);
  }
  return stream_wanted_;
}

void WatchMachine::line(std::string_view text) {
  if (text.find_first_not_of(" \t\r") == std::string_view::npos) return;
  try {
    json::monotonic_resource memory;
    const json::value event = parsed_or_error(text, &memory);
    const auto* object = object_in(event, "object");
    if (object == nullptr) fail(Errc::protocol, "an event without an object");
    const std::string_view type = text_in(event.get_object(), "type");
    if (type == "ERROR") {
      const auto* code = object->if_contains("code");
      json::error_code error;
      const int status = code != nullptr && code->is_number() ? code->to_number<int>(error) : 0;
      list_again();
      pause_later();
      if (status != 410)  // the version is too old: the next list reports everything
        trouble(status, one_line(text_in(*object, "message")));
      return;
    }
    if (type == "BOOKMARK") {
      const auto* metadata = object_in(event.get_object().at("object"), "metadata");
      if (metadata == nullptr || text_in(*metadata, "resourceVersion").empty())
        fail(Errc::protocol, "a bookmark without resourceVersion");
      version_ = text_in(*metadata, "resourceVersion");
    } else if (type == "ADDED" || type == "MODIFIED" || type == "DELETED") {
      const std::string version(Identity(*object).version);
      changed(type == "DELETED" ? Kind::deleted : Kind::modified, *object);
      version_ = version;
    } else {
      fail(Errc::protocol, "an event of the type '{}'", one_line(type, 40));
    }
    heard_ = true;
    back_off_.reset();
  } catch (const Error& e) {
    list_again();
    pause_later();
    trouble(0, fmt::format("the API server sent {}", e.what()));
  }
}

void WatchMachine::changed(Kind kind, const json::object& object) {
  const Identity identity(object);
  const std::string key = identity.key();
  auto at = known_.find(key);
  if (kind == Kind::deleted) {
    if (at == known_.end()) return;
    if (at->second.uid == identity.uid) {
      known_.erase(at);
      emit({.kind = Kind::deleted, .object = &object});
    }
    return;
  }
  if (at != known_.end() && at->second.uid != identity.uid) {  // another object of the same name
    const auto node = known_.extract(at);
    gone(node.key(), node.mapped());
    at = known_.end();
  }
  const bool fresh = at == known_.end();
  if (fresh) at = known_.emplace(key, Known{.uid = std::string(identity.uid), .version = {}, .labels = {}}).first;
  Known& known = at->second;
  known.seen = list_number_;
  if (known.version == identity.version) return;
  known.version = identity.version;
  const auto* labels = object_in(*identity.metadata, "labels");
  known.labels = labels != nullptr ? *labels : json::object();
  emit({.kind = fresh ? Kind::added : Kind::modified, .object = &object});
}

void WatchMachine::gone(const std::string& key, const Known& known) {
  const auto slash = key.find('/');
  json::object metadata{{"name", json::string_view(key).substr(slash + 1)}, {"uid", known.uid}};
  if (slash > 0) metadata["namespace"] = json::string_view(key).substr(0, slash);
  if (!known.labels.empty()) metadata["labels"] = known.labels;
  const json::object object{{"metadata", std::move(metadata)}};
  emit({.kind = Kind::deleted, .object = &object, .unseen = true});
}

void WatchMachine::stream_over(double lasted) {
  partial_.clear();
  if (pause_due_ || version_.empty()) return;  // the stream was abandoned
  if (lasted < 1 && !heard_) pause_later();
  if (lasted >= 1) back_off_.reset();
}

void WatchMachine::failed(int status, std::string_view text, std::optional<double> retry_after) {
  partial_.clear();
  if (status == 410) {
    if (version_.empty()) ++expired_lists_;  // fetching its pages took too long
    list_again();
    pause_later();
    return;
  }
  if (version_.empty() && !continue_.empty()) list_again();
  retry_after_ = retry_after;
  pause_later();
  trouble(status, text);
}

}  // namespace hypertune::inline v0::k8s::detail
