// PodState: the state of a worker's pod as reported by Kubernetes. No I/O.
#pragma once

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>

namespace hypertune::inline v0::k8s {

struct PodState {
  enum class Phase : std::uint8_t { waiting, running, ended };
  /// How likely it is that a waiting pod will run without anyone's intervention.
  enum class Prospect : std::uint8_t {
    likely,    ///< it is on its way
    unlikely,  ///< someone probably has to correct something: an image that cannot be pulled
    never,
  };

  std::string name, uid, worker;
  std::string node;         ///< empty: it has none yet
  std::string ip;           ///< empty: likewise
  std::string driver = {};  ///< the driver's address that it was given
  bool avoids = false;      ///< it was made with nodes to avoid
  Phase phase = Phase::waiting;
  Prospect prospect = Prospect::likely;
  bool leaving = false;          ///< it is being deleted, evicted or preempted
  bool deleted = false;          ///< its deletion was requested: another request would change nothing
  bool disrupted = false;        ///< Kubernetes or a user has taken it away; it has not ended by itself
  bool ended_by_itself = false;  ///< it ended before it was taken away (set by PodTable)
  std::uint64_t memory = 0;      ///< its container's limit, in bytes; 0: none
  bool cannot_grow = false;      ///< a resize has been asked for that its node has no room for now, or never
  std::int64_t grace = 0;        ///< if it is being deleted: its grace period in seconds
  std::string reason = {};       ///< one word, as a category: "Unschedulable", "ImagePullBackOff", "OOMKilled"
  std::string message = {};      ///< its container's termination message
  std::string sentence = {};     ///< why it does not run, or how it ended; follows "worker-3 …"; empty while it runs
};

/// `container`: the one in which trials run. Accepts any object; missing parts count as absent.
PodState pod_state(const boost::json::object& pod, const std::string& container);

}  // namespace hypertune::inline v0::k8s
