// Rollout: which version answers, and how the next one takes over.
#pragma once

#include "version.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::serving {

/// A version that is offered is started beside the live one, answers the validation request with each of its replicas, has
/// its share of the requests for a while if there is to be a canary, and takes over. The old one ends when its last request
/// is answered. One that cannot begin, answers wrongly, or takes other inputs than the live one is rejected, and the live
/// one stays. To be used by the thread of the io_context.
class Rollout {
 public:
  /// `validation`: nullopt: rows of zeros, whose answers do not matter.
  Rollout(ModelVersion::Parts parts, std::optional<InferenceRequest> validation);
  Rollout(const Rollout&) = delete;
  Rollout& operator=(const Rollout&) = delete;

  /// `pinned`: the user wants this one, and no other: one that is to take over is given up.
  void offer(std::shared_ptr<const ModelFiles> files, bool pinned = false);
  /// A version that is to take over is given up; if there is none, the one before the live one takes over again, without a
  /// canary. Returns the name of that which is live then; "": there is none.
  std::string roll_back();

  /// Which version answers the next request. `wanted`: its name; "": any. nullptr: there is none.
  std::shared_ptr<ModelVersion> choose(std::string_view wanted = {});
  /// The live one; nullptr: there is none yet.
  const std::shared_ptr<ModelVersion>& live() const { return live_; }
  /// Whether it has its share of the requests, and is not the live one.
  bool is_canary(const ModelVersion& version) const { return canary_ && candidate_.get() == &version; }
  /// All of which processes exist, the live one first.
  std::vector<std::shared_ptr<ModelVersion>> all() const;
  /// The version that would come back; "": none.
  std::string previous() const { return previous_ ? previous_->version : std::string(); }
  /// Why the newest version was rejected; "": it was not.
  const std::string& rejection() const { return rejection_; }
  const std::string& rejected() const { return rejected_; }  ///< the version that was rejected last; "": none
  /// Set if no version could begin at all.
  bool without_model() const { return !live_ && !candidate_ && !rejection_.empty(); }
  /// Called when a version is live, or was rejected.
  std::function<void()> changed;

  void close();

 private:
  void on_change();
  void give_up_candidate();
  void start(std::shared_ptr<const ModelFiles> files);
  boost::asio::awaitable<void> validate(std::shared_ptr<ModelVersion> version);
  std::optional<InferenceRequest> probe_for(const ModelVersion& version) const;
  void validated(const std::shared_ptr<ModelVersion>& version, const std::string& trouble);
  void begin_canary();
  bool worse_than_live() const;
  void end_canary();
  void promote();
  void reject(const std::string& why);
  void settle();
  void scale();

  ModelVersion::Parts parts_;
  std::optional<InferenceRequest> validation_;
  std::shared_ptr<ModelVersion> live_, candidate_;
  std::vector<std::shared_ptr<ModelVersion>> retiring_;
  std::shared_ptr<const ModelFiles> previous_, next_;
  bool validating_ = false, canary_ = false;
  bool proven_ = false;  // the candidate was live before: it needs no canary
  double canary_turn_ = 0;
  std::uint64_t live_answered_ = 0, live_failed_ = 0;  // when the canary began
  std::string rejection_, rejected_;
  boost::asio::steady_timer canary_end_, tick_;
  double more_since_ = -1, fewer_since_ = -1;
  bool ticking_ = false;
};

}  // namespace hypertune::inline v0::serving
