// ElasticState: what the workers of a trial have in common, through any change of the group. Link hypertune::train.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/train/communicator.hpp>
#include <hypertune/train/data_parallel.hpp>
#include <hypertune/trial/context.hpp>
#include <hypertune/trial/group.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

struct ElasticOptions {
  CommunicatorOptions communicator = {};
  DataParallelOptions gradients = {};  ///< of ElasticState::gradients(); `signal` is ElasticState's own
  /// Makes the communicator of a generation; empty: connect(), by where the ranks are.
  std::function<Communicator(const GroupPlace&, Rendezvous&, const CommunicatorOptions&)> connect = {};
};

/// The state of a training that several workers do together, and the group that they are. When a worker is lost, the
/// others go back to the last commit, form a new group in the same processes, and go on; a worker that joins gets the
/// state from those that are there. (After Elastic Horovod's State and run; here there is no restart of the user's
/// function: run() calls a part of it again.)
///
///     ht::Training train(Config config, ht::Context& context) {
///       Network network(config);                       // data and model stay in memory through all changes
///       ht::ElasticState group(context);
///       auto& gradients = group.gradients();
///       for (auto& layer : network.layers()) gradients.add(layer.gradient);
///       int epoch = context.next_step();
///       ht::ElasticSampler sampler(data.size());
///       group.keep(network.parameters()).keep(epoch).keep(sampler);
///       for (; epoch < 81; ++epoch) {
///         group.run([&] {
///           while (!sampler.done()) {
///             const auto batch = sampler.next(64, group.rank(), group.size());
///             network.backward(data, batch);
///             gradients.reduce(batch.size());           // the mean of all workers
///             network.step(config.lr);
///             group.commit();
///           }
///           sampler.next_epoch();
///         });
///         co_yield ht::report("accuracy", network.accuracy(data));
///       }
///     }
///
/// All workers register the same things in the same order, and make the same calls. What is registered outlives this
/// object. Not thread-safe: of the trial's thread, as its Context is.
class ElasticState {
 public:
  explicit ElasticState(Context& context, ElasticOptions options = {});
  ElasticState(const ElasticState&) = delete;
  ElasticState& operator=(const ElasticState&) = delete;
  ~ElasticState();

  // ---- What is kept: before the first run().

  /// Values whose number does not change (weights, momentum).
  template <Element T>
  ElasticState& keep(std::span<T> values) {
    return keep_bytes(std::as_writable_bytes(values));
  }
  template <Element T>
  ElasticState& keep(std::vector<T>& values) {
    return keep(std::span<T>(values));
  }
  /// A value that is copied byte by byte (a counter, the state of a generator of random numbers). Not what points at
  /// other things: those would not be kept.
  template <class T>
    requires(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::ranges::view<T>)
  ElasticState& keep(T& value) {
    return keep_bytes(std::as_writable_bytes(std::span<T, 1>(&value, 1)));
  }
  /// What has a state() that restore() takes (ElasticSampler, LossScaler …).
  template <class T>
    requires(!std::is_trivially_copyable_v<T> && requires(T& object) { object.restore(object.state()); } &&
             std::is_trivially_copyable_v<std::remove_cvref_t<decltype(std::declval<T&>().state())>>)
  ElasticState& keep(T& object) {
    using State = std::remove_cvref_t<decltype(object.state())>;
    return keep(
        [&object] {
          const State state = object.state();
          return std::string(reinterpret_cast<const char*>(&state), sizeof state);
        },
        [&object](std::string_view bytes) {
          State state;
          if (bytes.size() != sizeof state) fail(Errc::usage, "the workers keep states of other types");
          bytes.copy(reinterpret_cast<char*>(&state), sizeof state);
          object.restore(state);
        });
  }
  /// What has it as bytes (Accumulator).
  template <class T>
    requires(!std::is_trivially_copyable_v<T> &&
             requires(T& object, std::string_view bytes) {
               { object.state() } -> std::same_as<std::string>;
               object.restore(bytes);
             })
  ElasticState& keep(T& object) {
    return keep([&object] { return object.state(); }, [&object](std::string_view bytes) { object.restore(bytes); });
  }
  /// Anything, as bytes of any number.
  ElasticState& keep(std::function<std::string()> save, std::function<void(std::string_view)> load);

  /// After the last keep(): the trial's checkpoints are what is kept, in place of Context::checkpoints(). Where there
  /// is one to go on from, it is loaded now. Where too few workers are left, or the program is to end at once, the last
  /// commit becomes a checkpoint: no more is lost than when a worker is.
  void checkpoints();

  // ---- Training.

  /// Calls `part()`, which trains and commits, until it has returned once: again from the last commit, in another
  /// group, whenever that changes. What `part` has done when it returns is a commit, too. A worker that joins others
  /// when they have just finished the part returns at once. Throws what `part` throws, but for a GroupError of a
  /// collective, which is what run() is there for; a GroupError if the attempt is to end or the group goes on without
  /// this worker. Not within `part`. Where there are several calls of run(), a worker that joins returns at once from
  /// those before the one in which the others are: all that decides about which is called next is to be kept.
  void run(const std::function<void()>& part, const std::source_location& where = std::source_location::current());

  /// Notes the state to go back to: a copy of all that is kept. The place at which workers come and go, so that what
  /// is between two commits is lost, at most, when a worker is. Within run().
  void commit();

  /// The gradients of all workers: rebound in each generation. What tells the workers to change their group travels
  /// with them, so that a commit() after a reduce() costs no collective.
  DataParallel& gradients();

  /// Of the generation that trains; before the first run() of one worker that is alone.
  Communicator& communicator() { return *communicator_; }
  /// … before the first run() the place that the worker was started for.
  const GroupPlace& place() const { return place_; }
  int rank() const { return place_.rank; }
  int size() const { return place_.size(); }
  /// How many generations this worker has trained in.
  int generations() const { return generations_; }

  /// Called after each change of the group, before the part goes on: to follow the number of workers (learning rate,
  /// batch size), to print.
  void on_change(std::function<void(const GroupPlace& before, const GroupPlace& after)> changed) {
    changed_.push_back(std::move(changed));
  }

 private:
  struct Leave {};  // thrown by commit(): all leave the generation here
  struct Kept {
    std::span<std::byte> bytes;
    std::function<std::string()> save;
    std::function<void(std::string_view)> load;
  };
  ElasticState& keep_bytes(std::span<std::byte> bytes);
  void snapshot(bool at_end);
  void restore();
  bool agree();
  bool form();
  bool sync();
  void give_up(const GroupError& why);
  void leave();
  int number_of(const std::source_location& where);
  bool skips();
  std::string encoded() const;
  void write_checkpoint(CheckpointWriter& out) const;
  void load(const Checkpoint& checkpoint);
  void leave_behind();

  Context& context_;
  Group& group_;
  ElasticOptions options_;
  std::vector<Kept> kept_;
  std::optional<Communicator> communicator_;
  std::unique_ptr<DataParallel> gradients_;
  bool asked_ = false;  // by the gradients, since the last commit
  GroupPlace place_ = {};
  bool joined_ = false;
  int generations_ = 0;
  std::vector<std::function<void(const GroupPlace&, const GroupPlace&)>> changed_;

  // The last commit.
  std::vector<std::byte> saved_, spare_;
  std::int64_t commits_ = 0;
  int steps_ = 0;        // of the Context
  int part_ = 0;         // within which call of run(), by number_of()
  bool at_end_ = false;  // … at its end
  bool synced_ = false;  // it has what all have
  bool running_ = false;
  bool loaded_ = false;       // from a checkpoint, and not gone on since
  bool checkpoints_ = false;  // they are its own
  bool offered_ = false;      // the last commit, by a function that refers to this object

  std::vector<std::source_location> parts_;  // the calls of run(), in the order in which they came first
  int here_ = 0;                             // which one this is
  std::optional<int> ahead_;                 // the one in which the others are
  std::set<int> skipped_;                    // on the way there
};

}  // namespace hypertune::inline v0
