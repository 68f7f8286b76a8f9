// ModelVersion: a checkpoint that is served: its replicas, and the requests that wait for them.
#pragma once

#include "batcher.hpp"
#include "metrics.hpp"
#include "replica.hpp"

#include <hypertune/net/wakeup.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace hypertune::inline v0::serving {

/// A request, until it is answered. Its owner waits for `done`.
struct Pending {
  explicit Pending(boost::asio::io_context& io) : done(io) {}
  InferenceRequest request;
  Waiting place;
  int failures = 0;    ///< replicas that were lost with it
  bool probe = false;  ///< to see whether it is answered: its time does not count, the first one takes long
  hypertune::detail::Wakeup done;
  int status = 0;  ///< of HTTP; 0: not answered yet
  std::string error;
  std::vector<Tensor> outputs;
  std::string version;

  void answer(int with, std::string why) {
    status = with;
    error = std::move(why);
    done.raise();
  }
};

/// To be used by the thread of the io_context.
class ModelVersion : public std::enable_shared_from_this<ModelVersion> {
 public:
  enum class State : std::uint8_t { starting, ready, failed, retired };
  struct Parts {
    boost::asio::io_context& io;
    ReplicaStarter& starter;
    const ServeOptions& options;
    Metrics& metrics;
  };

  /// `changed()`: it has become ready, has failed, or has ended after retire().
  ModelVersion(Parts parts, std::shared_ptr<const ModelFiles> files, std::function<void()> changed);
  ModelVersion(const ModelVersion&) = delete;
  ModelVersion& operator=(const ModelVersion&) = delete;
  ~ModelVersion();

  /// Starts or ends replicas until there are that many.
  void scale(int replicas);
  /// Takes a request in. It is answered at once if it cannot be met.
  void add(const std::shared_ptr<Pending>& pending);
  /// Takes no more requests; ends when those that it has are answered.
  void retire();
  /// Ends now. Requests are answered by an error.
  void close();

  const ModelFiles& files() const { return *files_; }
  std::shared_ptr<const ModelFiles> shared_files() const { return files_; }
  State state() const { return state_; }
  const std::string& why() const { return why_; }
  /// nullopt: the model has not said what it takes.
  const std::optional<Signature>& signature() const { return signature_; }
  int wanted() const { return wanted_; }
  int ready_replicas() const;
  std::size_t ongoing() const { return all_.size(); }
  std::size_t waiting() const { return batcher_ ? batcher_->size() : 0; }
  std::uint64_t answered() const { return answered_; }
  std::uint64_t failed() const { return failed_; }

 private:
  using Batch = std::vector<std::shared_ptr<Pending>>;
  struct Member {
    std::shared_ptr<Replica> replica;
    Batch batch;
    int rows = 0;
    double begun = 0;
  };

  void start_replica();
  void ready(std::optional<Signature> signature);
  void answered(Replica& replica, std::string_view bytes, std::optional<std::size_t> json);
  void ended(Replica& replica, const std::string& why);
  void pump();
  void begin(Member& member, std::vector<Waiting> waiting);
  void again(Batch batch, bool guilty, const std::string& why);
  void finish(const std::shared_ptr<Pending>& pending, int status, std::string why);
  void fail_all(int status, const std::string& why);
  void fail_version(const std::string& why);
  void end_if_done();
  bool out_of_order() const;
  void tell_wrong(const std::string& why);
  void restart_after(double seconds);
  double free_at() const;
  std::list<Member>::iterator member_of(const Replica& replica);

  Parts parts_;
  std::shared_ptr<const ModelFiles> files_;
  std::function<void()> changed_;
  State state_ = State::starting;
  std::string why_;
  std::optional<Signature> signature_;
  std::optional<Batcher> batcher_;
  std::unordered_map<RequestId, std::shared_ptr<Pending>> all_;
  std::list<Member> members_;
  int wanted_ = 0, failed_starts_ = 0;
  double told_wrong_ = -1;  // when a wrong answer was told last
  RequestId next_id_ = 0;
  std::uint64_t answered_ = 0, failed_ = 0;
  boost::asio::steady_timer wake_, restart_;
  bool restarting_ = false;
};

}  // namespace hypertune::inline v0::serving
