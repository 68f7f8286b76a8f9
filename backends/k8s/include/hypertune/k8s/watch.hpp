// Watch: all objects of a kind, and every change of them, for as long as it lives.
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
  std::uint64_t page = 500;  ///< objects in an answer to a list
  /// The most bytes of one event; a longer one is trouble, and all is listed again.
  std::uint64_t max_event = std::uint64_t{8} << 20U;
  Seconds stream = 300;      ///< for how long one request watches; another one follows
  Seconds max_backoff = 30;  ///< between attempts
};

struct WatchEvent {
  enum class Kind : std::uint8_t {
    added,
    modified,
    deleted,
    synced,   ///< all objects that are there were told; again each time that trouble is over
    trouble,  ///< events may be late: `text` says why. Attempts go on
  };

  Kind kind;
  /// Of the first three; valid within the call. Of a deletion: as it was at last.
  const boost::json::object* object = nullptr;
  /// The deletion itself was not seen (found by a later list): `object` has no more than `metadata` with name,
  /// namespace, uid and labels.
  bool unseen = false;
  int status = 0;              ///< of trouble: HTTP's (403: may not watch; 404: no such kind), 0 of others
  std::string_view text = {};  ///< of trouble: one line
};

/// Called on the client's thread, one call at a time: it must not wait, nor call the Client, nor end the Watch. What it
/// throws is trouble.
using WatchHandler = std::function<void(const WatchEvent&)>;

namespace detail {
struct WatchTask;
}

/// Lists and watches from its making to its end (Client::watch() makes it). Streams that are cut, expired versions
/// (410), restarts of the API server are survived: events come late, but none is lost that still matters. Several
/// changes of an object may come as one. Move only.
class Watch {
 public:
  Watch() = default;
  explicit Watch(std::shared_ptr<detail::WatchTask> task) : task_(std::move(task)) {}
  Watch(Watch&&) noexcept = default;
  Watch& operator=(Watch&& other) noexcept;
  ~Watch();

  /// Ends it; the handler is not called any more when this returns. Not from within the handler.
  void end() noexcept;

 private:
  std::shared_ptr<detail::WatchTask> task_;
};

}  // namespace hypertune::inline v0::k8s
