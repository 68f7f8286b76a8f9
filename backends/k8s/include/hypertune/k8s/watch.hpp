// Watch: all objects of a kind and every change of them, for as long as the Watch exists.
#pragma once

#include <hypertune/k8s/request.hpp>

#include <boost/json/fwd.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::k8s {

/// Meant for designated initialisers.
struct WatchOptions {
  std::string path;  ///< of the collection: "/api/v1/namespaces/x/pods"
  std::string label_selector = {}, field_selector = {};
  std::uint64_t page = 500;  ///< most objects in one answer to a list
  /// The most bytes of one event. A longer one is reported as trouble, and all objects are listed again.
  std::uint64_t max_event = std::uint64_t{8} << 20U;
  Seconds stream = 300;      ///< how long one request watches; then the next one follows
  Seconds max_backoff = 30;  ///< between attempts
};

struct WatchEvent {
  enum class Kind : std::uint8_t {
    added,
    modified,
    deleted,
    synced,   ///< all existing objects were reported; sent again each time after trouble is over
    trouble,  ///< events may be late: `text` says why. Attempts continue
  };

  Kind kind;
  /// Set for the first three kinds; valid during the call. For a deletion: its last state.
  const boost::json::object* object = nullptr;
  /// The deletion itself was missed, and found by a later list: `object` then has only `metadata`, with name,
  /// namespace, uid and labels.
  bool unseen = false;
  int status = 0;              ///< of trouble: HTTP status (403: may not watch; 404: no such kind), otherwise 0
  std::string_view text = {};  ///< of trouble: one line
};

/// Called on the client's thread, one call at a time. It must not block, call the Client, or end the Watch. An
/// exception that it throws is reported as trouble.
using WatchHandler = std::function<void(const WatchEvent&)>;

namespace detail {
struct WatchTask;
}

/// Lists and watches from its creation by Client::watch() to its end. It survives broken streams, expired versions
/// (410) and restarts of the API server: events may be late, but none that still matters is lost. Several changes of an
/// object may arrive as one. Move only.
class Watch {
 public:
  Watch() = default;
  explicit Watch(std::shared_ptr<detail::WatchTask> task) : task_(std::move(task)) {}
  Watch(Watch&&) noexcept = default;
  Watch& operator=(Watch&& other) noexcept;
  ~Watch();

  /// Ends it. When this returns, the handler is not called any more. Must not be called from within the handler.
  void end() noexcept;

 private:
  std::shared_ptr<detail::WatchTask> task_;
};

}  // namespace hypertune::inline v0::k8s
