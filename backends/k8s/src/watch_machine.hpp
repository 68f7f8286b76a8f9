// WatchMachine: what is asked of the API server to see every change of a collection, and what its answers mean. No
// clock and no I/O.
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

/// Lists (page by page), then watches from the version of the list, over and over. Whoever carries it out asks next(),
/// does that, and tells how it went; the events come to the handler within these calls.
class WatchMachine {
 public:
  struct Action {
    enum class Kind : std::uint8_t { list, stream, pause };
    Kind kind = Kind::list;
    Query query = {};
    double seconds = 0;  ///< of a pause; for a stream: when it has to be over
  };

  WatchMachine(WatchOptions options, WatchHandler handler);

  const WatchOptions& options() const { return options_; }
  /// `uniform`: from [0, 1).
  Action next(double uniform);

  /// The answer to a list that had status 200.
  void listed(std::string_view body);
  /// A stream began with status 200.
  void streaming();
  /// Bytes of it, however they were cut. false: no more of it is wanted.
  bool feed(std::string_view bytes);
  /// It ended, after so many seconds.
  void stream_over(double lasted);
  /// There was no answer (status 0), or another one than 200. `text`: one line.
  void failed(int status, std::string_view text, std::optional<double> retry_after = {});

  /// A page of the list stands for what it was when the first one was made; as long as it is, nothing is known.
  bool listing() const { return version_.empty(); }
  std::size_t known() const { return known_.size(); }
  std::size_t waiting() const { return partial_.size(); }  ///< bytes of an event that is not complete

 private:
  struct Known {
    std::string uid, version;
    boost::json::object labels;
    std::uint64_t seen = 0;  // by the list of this number
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
  std::string continue_;                // of the list that is under way
  std::uint64_t list_number_ = 1;
  unsigned expired_lists_ = 0;  // in a row, while their pages were fetched
  std::string partial_;         // the beginning of a line
  bool stream_wanted_ = true, heard_ = false, troubled_ = false;
  bool pause_due_ = false;
  std::optional<double> retry_after_;
  BackOff back_off_;
};

}  // namespace hypertune::inline v0::k8s::detail
