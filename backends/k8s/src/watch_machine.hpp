// WatchMachine: the protocol for watching a collection: which requests to make, and what their answers mean. No clock
// and no I/O.
#pragma once

#include "back_off.hpp"

#include <hypertune/k8s/watch.hpp>

#include <boost/json/object.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s::detail {

/// Lists (page by page), then watches from the version of the list, over and over. The caller asks next(), does what it
/// says, and reports the result; the handler is called with the events during these calls.
class WatchMachine {
 public:
  struct Action {
    enum class Kind : std::uint8_t { list, stream, pause };
    Kind kind = Kind::list;
    Query query = {};
    double seconds = 0;  ///< of a pause; for a stream: its time limit
  };

  WatchMachine(WatchOptions options, WatchHandler handler);

  const WatchOptions& options() const { return options_; }
  /// The next thing to do. `uniform`: a random number from [0, 1).
  Action next(double uniform);

  /// To be called with the answer to a list that had status 200.
  void listed(std::string_view body);
  /// To be called when a stream began with status 200.
  void streaming();
  /// Takes bytes of the stream, split anywhere. False: no more of it is wanted.
  bool feed(std::string_view bytes);
  /// To be called when the stream ended, `lasted` seconds after its start.
  void stream_over(double lasted);
  /// To be called when there was no answer (status 0), or another status than 200. `text`: one line.
  void failed(int status, std::string_view text, std::optional<double> retry_after = {});

  /// Whether a list is due or in progress. Its pages show the collection as of the first page.
  bool listing() const { return version_.empty(); }
  std::size_t known() const { return known_.size(); }
  std::size_t waiting() const { return partial_.size(); }  ///< bytes of an event that is not complete

 private:
  struct Known {
    std::string uid, version;
    boost::json::object labels;
    std::uint64_t seen = 0;  // number of the last list that contained it
  };
  using Kind = WatchEvent::Kind;

  void emit(const WatchEvent& event);
  void trouble(int status, std::string_view text);
  void recovered();
  void line(std::string_view text);
  void changed(Kind kind, const boost::json::object& object);
  void gone(const std::string& key, const Known& known);
  void list_again();
  void pause_later() { pause_due_ = true; }

  WatchOptions options_;
  WatchHandler handler_;
  std::map<std::string, Known> known_;  // by "namespace/name"
  std::string version_;                 // empty: a list is due
  std::string continue_;                // continue token of the list in progress
  std::uint64_t list_number_ = 1;
  unsigned expired_lists_ = 0;  // lists in a row that expired while their pages were fetched
  std::string partial_;         // an incomplete line
  bool stream_wanted_ = true, heard_ = false, troubled_ = false;
  bool pause_due_ = false;
  std::optional<double> retry_after_;
  BackOff back_off_;
};

}  // namespace hypertune::inline v0::k8s::detail
