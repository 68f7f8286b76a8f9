// DriverCheckpoints: the driver's part of checkpoint transfers: takes what hosts offer, provides what they want.
#pragma once

#include "checkpoint_exchange.hpp"
#include "content_ids.hpp"
#include "job_threads.hpp"
#include "link.hpp"
#include "shared_folder.hpp"

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/hosts/checkpoint_transfer.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote::detail {

/// Must be used on the io_context's one thread, except join() and reset(), which are called after that thread has
/// ended.
class DriverCheckpoints {
 public:
  /// References to parts of the executor. All must outlive this object.
  struct ExecutorParts {
    asio::io_context& io;
    const std::vector<LinkPointer>& links;
    const CheckpointTransfer& options;
    const std::stop_source& closing;
    std::function<void(Event)> emit;
    std::function<void(Link&)> publish;  ///< called when the account of a host has changed
  };

  explicit DriverCheckpoints(ExecutorParts executor)
      : executor_(std::move(executor)), rate_(std::make_shared<TokenBucket>(executor_.options.rate_limit)) {}

  /// `slow`: threads for accesses to a shared folder.
  void begin(asio::thread_pool& slow) {
    slow_ = &slow;
    disk_.emplace(1);
  }
  /// `directory`: the experiment's folder.
  void start(const std::filesystem::path& directory, std::optional<SharedFolder> folder);

  /// A connection begins: adds the settings for checkpoints to its Begin message.
  void introduce(const LinkPointer& link, wire::Begin& begin);
  /// The connection has ended.
  void close(const ConnectionPointer& connection);
  /// A trial is about to run on a host.
  void launching(TrialId trial);
  /// The trial will not continue.
  void ended(TrialId trial);

  /// The next piece of a copy that is sent through the stream.
  std::optional<wire::Piece> next_whole(const ConnectionPointer& connection);
  std::shared_ptr<Pace> new_pace() { return std::make_shared<Pace>(executor_.io, rate_); }

  void on(const LinkPointer& link, const ConnectionPointer& connection, wire::Offer& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, const wire::Piece& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, const wire::Unavailable& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, const wire::Want& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, const wire::Proof& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, const wire::Serving& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, const wire::Fetched& m);

  /// Stops the fetches and the server, and waits for their end.
  void stop();
  void join() { disk_->join(); }
  /// Resets the state for the next experiment.
  void reset();

 private:
  static constexpr int fetches_at_once = 8;     // per host
  static constexpr int max_fetches = 64;        // in total; each has a thread
  static constexpr std::size_t max_held = 256;  // known checkpoints per host
  static constexpr int max_offered = 64;        // pending offers per trial
  static constexpr int max_requests = 100;      // requests of an attempt for the checkpoint it continues from

  template <class Offers, class P>
  static void require_few(const Offers& offers, TrialId trial, const P& offer_of);
  void complete(const LinkPointer& link, const ConnectionPointer& connection, std::uint64_t transfer);
  void take(const LinkPointer& link, const ConnectionPointer& connection, const wire::Offer& offer,
            const std::optional<CheckpointInfo>& sealed, const std::string& error);
  void lose(const ConnectionPointer& connection, std::uint64_t transfer, const CheckpointInfo& info,
            const std::string& why);
  void take_shared(const LinkPointer& link, const ConnectionPointer& connection, const wire::Offer& offer);
  void fetch_all();
  void fetch_next(const LinkPointer& link, const ConnectionPointer& connection);
  void fetched(const LinkPointer& link, const ConnectionPointer& connection, const wire::Offer& offer,
               const FetchOutcome& outcome);
  wire::Source source_of(const LinkPointer& link, const ConnectionPointer& connection, const wire::Want& wanted);
  void close_request(const ConnectionPointer& connection, std::uint64_t transfer);
  void note_without(const std::string& digest, const std::vector<std::string>& endpoints);
  void note_holder(const ConnectionPointer& connection, const CheckpointInfo& info);
  void send_copy(const LinkPointer& link, const ConnectionPointer& connection, const wire::Want& wanted);

  const ExecutorParts executor_;
  asio::thread_pool* slow_ = nullptr;
  std::optional<asio::thread_pool> disk_;  // one thread, so that jobs run in order
  std::optional<LocalCheckpointStore> store_;
  std::optional<CheckpointExchange> exchange_;
  std::string token_;
  const std::shared_ptr<TokenBucket> rate_;
  std::optional<SharedFolder> shared_;
  JobThreads fetches_;
  ContentIds content_ids_{
      {.elsewhere = [this](ContentIds::Job job) { fetches_.run(std::move(job)); },
       .here = [this](ContentIds::Job job) { asio::post(executor_.io, std::move(job)); },
       .compute = [this](const CheckpointInfo& info,
                         std::stop_token stop) { return exchange_->content_id(info, std::move(stop)); }}};
  int fetching_now_ = 0;
  std::size_t turn_ = 0;        // whose turn it is to fetch next
  std::set<TrialId> fetching_;  // trials with a checkpoint that is being fetched or dropped; one at a time
};

}  // namespace hypertune::inline v0::remote::detail
