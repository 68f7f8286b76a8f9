// What a WatchMachine is told, and what it says: lists and events of a collection that a test makes up.
#pragma once

#include "watch_machine.hpp"

#include <boost/json.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::test {

inline std::string object_text(const std::string& name, int version, const std::string& uid = "",
                               const std::string& more = "") {
  return R"({"metadata":{"name":")" + name + R"(","namespace":"n","uid":")" + (uid.empty() ? "u-" + name : uid) +
         R"(","resourceVersion":")" + std::to_string(version) + R"(","labels":{"app":"x"}})" + more + "}";
}
inline std::string event_text(const char* type, const std::string& object) {
  return std::string(R"({"type":")") + type + R"(","object":)" + object + "}\n";
}
inline std::string list_text(int version, const std::vector<std::string>& objects, const std::string& next = "") {
  std::string text = R"({"kind":"PodList","metadata":{"resourceVersion":")" + std::to_string(version) +
                     R"(","continue":")" + next + R"("},"items":[)";
  for (std::size_t i = 0; i < objects.size(); ++i) text += (i > 0 ? "," : "") + objects[i];
  return text + "]}";
}
inline std::string expired_text() {
  return R"({"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410,"message":"too old"}})"
         "\n";
}

/// Writes down what a handler is told: "added a@5", "deleted a?" (unseen), "synced", "trouble: …".
struct Told {
  std::vector<std::string> lines;
  std::map<std::string, std::string> there;  // name -> version, as a user of the watch would have it

  void operator()(const k8s::WatchEvent& event) {
    using Kind = k8s::WatchEvent::Kind;
    if (event.kind == Kind::synced) return lines.emplace_back("synced"), void();
    if (event.kind == Kind::trouble) return lines.push_back("trouble: " + std::string(event.text)), void();
    const auto& metadata = event.object->at("metadata").as_object();
    const std::string name(metadata.at("name").as_string());
    const std::string version = event.unseen ? "" : std::string(metadata.at("resourceVersion").as_string());
    if (event.kind == Kind::deleted) {
      there.erase(name);
      lines.push_back("deleted " + name + (event.unseen ? "?" : "@" + version));
    } else {
      there[name] = version;
      lines.push_back((event.kind == Kind::added ? "added " : "modified ") + name + "@" + version);
    }
  }
};

inline std::string value_of(const k8s::Query& query, std::string_view key) {
  for (const auto& [name, value] : query)
    if (name == key) return value;
  return {};
}

}  // namespace hypertune::inline v0::test
