// PodState: what Kubernetes says of a worker's pod, and what follows from it. No I/O.
#pragma once

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>

namespace hypertune::inline v0::k8s {

struct PodState {
  enum class Phase : std::uint8_t { waiting, running, ended };
  /// How likely it is that what it waits for comes about without anybody's doing.
  enum class Hope : std::uint8_t {
    likely,    ///< it is on its way
    doubtful,  ///< as likely as not somebody has to mend something: an image that cannot be pulled
    none,      ///< never
  };

  std::string name, uid, worker;
  std::string node;         ///< empty: it has none yet
  std::string ip;           ///< empty: likewise
  std::string driver = {};  ///< where it was told that its driver is
  bool avoids = false;      ///< it was made to be kept away from some nodes
  Phase phase = Phase::waiting;
  Hope hope = Hope::likely;
  bool leaving = false;       ///< it is being deleted, evicted or preempted
  bool deleted = false;       ///< its deletion has been asked for: to ask again would change nothing
  bool disrupted = false;     ///< Kubernetes, or somebody, has taken it away: it has not ended by itself
  bool own_end = false;       ///< it has ended before it was taken away (PodLedger knows)
  std::int64_t grace = 0;     ///< of one that is being deleted: seconds that it has for its end
  std::string reason = {};    ///< one word, for who counts: "Unschedulable", "ImagePullBackOff", "OOMKilled"
  std::string message = {};   ///< of one that has ended: what its container has left to be read
  std::string sentence = {};  ///< why it does not run, or how it ended: follows "worker-3 …"; empty while it runs
};

/// `container`: the one in which trials run. What a pod lacks is taken for not there: any object is a state.
PodState pod_state(const boost::json::object& pod, const std::string& container);

}  // namespace hypertune::inline v0::k8s
