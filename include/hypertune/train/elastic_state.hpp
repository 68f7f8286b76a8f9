// ElasticState: the common state of the workers of a trial, kept across changes of the group. Link hypertune::train.
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
  /// Makes the communicator of a generation; empty: connect(), which goes by the places of the ranks.
  std::function<Communicator(const GroupPlace&, Rendezvous&, const CommunicatorOptions&)> connect = {};
};

/// The state of a training by several workers, and their group. When a worker is lost, the others go back to the last
/// commit, form a new group in the same processes, and continue. A worker that joins receives the state from the
/// others. (After Elastic Horovod's State and run. Here the user's function is not restarted: run() repeats a part of
/// it.)
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
/// All workers must register the same things in the same order, and make the same calls. Registered objects must
/// outlive this object. Not thread-safe: used by the trial's thread, like its Context.
class ElasticState {
 public:
  explicit ElasticState(Context& context, ElasticOptions options = {});
  ElasticState(const ElasticState&) = delete;
  ElasticState& operator=(const ElasticState&) = delete;
  ~ElasticState();

  // --- The state to be kept: registered before the first run().

  /// An array of fixed length (weights, momentum).
  template <Element T>
  ElasticState& keep(std::span<T> values) {
    return keep_bytes(std::as_writable_bytes(values));
  }
  template <Element T>
  ElasticState& keep(std::vector<T>& values) {
    return keep(std::span<T>(values));
  }
  /// A value that is copied byte by byte (a counter, the state of a random number generator). Data behind pointers in
  /// it would not be kept.
  template <class T>
    requires(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::ranges::view<T>)
  ElasticState& keep(T& value) {
    return keep_bytes(std::as_writable_bytes(std::span<T, 1>(&value, 1)));
  }
  /// An object with state() and restore() for a trivially copyable state (ElasticSampler, LossScaler …).
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
  /// An object with state() and restore() for a state as bytes (Accumulator).
  template <class T>
    requires(!std::is_trivially_copyable_v<T> &&
             requires(T& object, std::string_view bytes) {
               { object.state() } -> std::same_as<std::string>;
               object.restore(bytes);
             })
  ElasticState& keep(T& object) {
    return keep([&object] { return object.state(); }, [&object](std::string_view bytes) { object.restore(bytes); });
  }
  /// Anything else, as bytes of any number.
  ElasticState& keep(std::function<std::string()> save, std::function<void(std::string_view)> load);

  /// Called after the last keep(): the trial's checkpoints contain the registered state; replaces
  /// Context::checkpoints(). If the trial continues from a checkpoint, it is loaded now. If too few workers are left,
  /// or the program is to end at once, the last commit becomes a checkpoint, so that no more is lost than with a
  /// worker.
  void checkpoints();

  // --- Training.

  /// Calls `part()`, which trains and commits, until it has returned once. Whenever the group changes, it is called
  /// again from the last commit, in the new group. The return of `part` is a commit, too. A worker that joins when the
  /// others have just finished the part returns at once. Throws what `part` throws, except a GroupError of a
  /// collective, which run() handles. Throws a GroupError if the attempt is to end or the group continues without this
  /// worker. Must not be called within `part`. If there are several calls of run(), a worker that joins returns at once
  /// from those before the one that the others are in: everything that decides which one is called next must be kept.
  void run(const std::function<void()>& part, const std::source_location& where = std::source_location::current());

  /// Saves the state to go back to: a copy of everything kept. Workers join and leave here, so that a lost worker costs
  /// at most the work since the last commit. Must be called within run().
  void commit();

  /// The gradients of all workers, rebound in each generation. The signal that the group is to change travels with
  /// them, so that a commit() after a reduce() needs no collective.
  DataParallel& gradients();

  /// Of the current generation; before the first run(), of this worker alone.
  Communicator& communicator() { return *communicator_; }
  /// Of the current generation; before the first run(), the place that the worker was started for.
  const GroupPlace& place() const { return place_; }
  int rank() const { return place_.rank; }
  int size() const { return place_.size(); }
  /// The number of generations that this worker has trained in.
  int generations() const { return generations_; }

  /// Adds a function that is called after each change of the group, before the part continues: for example to adapt
  /// learning rate and batch size to the number of workers, or to print it.
  void on_change(std::function<void(const GroupPlace& before, const GroupPlace& after)> changed) {
    changed_.push_back(std::move(changed));
  }

 private:
  struct Leave {};  // thrown by commit(): all workers leave the generation here
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
  void offer_last_commit();

  Context& context_;
  Group& group_;
  ElasticOptions options_;
  std::vector<Kept> kept_;
  std::optional<Communicator> communicator_;
  std::unique_ptr<DataParallel> gradients_;
  bool asked_ = false;  // signal was called by the gradients since the last commit
  GroupPlace place_ = {};
  bool joined_ = false;
  int generations_ = 0;
  std::vector<std::function<void(const GroupPlace&, const GroupPlace&)>> changed_;

  // The last commit:
  std::vector<std::byte> saved_, spare_;
  std::int64_t commits_ = 0;
  int steps_ = 0;        // of the Context
  int part_ = 0;         // which call of run() it was made in, by number_of()
  bool at_end_ = false;  // … and whether at its end
  bool synced_ = false;  // this worker has the common state
  bool running_ = false;
  bool loaded_ = false;       // from a checkpoint, without training since
  bool checkpoints_ = false;  // checkpoints() was called
  bool offered_ = false;  // the last commit was passed to set_final_save(), by a function that refers to this object

  std::vector<std::source_location> parts_;  // the calls of run(), in the order of their first execution
  int here_ = 0;                             // the index of the current one
  std::optional<int> ahead_;                 // the index of the one that the others are in
  std::set<int> skipped_;                    // those skipped on the way there
};

}  // namespace hypertune::inline v0
