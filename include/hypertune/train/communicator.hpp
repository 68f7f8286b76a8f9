// Communicator: collectives among the workers of a trial, with the same semantics for all backends.
#pragma once

#include <hypertune/train/detail/operation_order.hpp>
#include <hypertune/train/element.hpp>
#include <hypertune/trial/group.hpp>
#include <hypertune/trial/trial.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace hypertune::inline v0 {

enum class Reduction : std::uint8_t { sum, mean, min, max };

/// One rank's part of a collective. All ranks must ask for the same operations in the same order, with the same counts
/// and types. Buffers belong to the operation until it is done. `after`: for backends of device memory, a stream; the
/// operation waits for the work that is in it now. Other backends ignore it.
namespace collective {
struct AllReduce {
  void* data = nullptr;  ///< input and output
  std::size_t count = 0;
  ElementType type = {};
  Reduction reduction = {};
  void* after = nullptr;
};
struct Broadcast {
  void* data = nullptr;  ///< input on the root, output on the others
  std::size_t count = 0;
  ElementType type = {};
  int root = 0;
  void* after = nullptr;
};
struct AllGather {
  const void* mine = nullptr;
  void* all = nullptr;  ///< `count` elements of each rank, by rank
  std::size_t count = 0;
  ElementType type = {};
  void* after = nullptr;
};
struct ReduceScatter {
  const void* all = nullptr;  ///< `count` elements for each rank, by rank
  void* mine = nullptr;
  std::size_t count = 0;
  ElementType type = {};
  Reduction reduction = {};
  void* after = nullptr;
};
struct Barrier {};

using Operation = std::variant<AllReduce, Broadcast, AllGather, ReduceScatter, Barrier>;
}  // namespace collective

/// A backend of collectives. perform() blocks until the operation is done on this rank, and is called by one thread at
/// a time. It throws, in bounded time, a GroupError that names the ranks which are lost or late; the backend is
/// unusable then. abort() may be called from any thread and repeatedly; running and later operations then throw its
/// argument.
template <class B>
concept CommunicatorBackend =
    requires(B& backend, const B& constant, const collective::Operation& operation, const GroupError& why) {
      { constant.rank() } -> std::convertible_to<int>;
      { constant.size() } -> std::convertible_to<int>;
      { constant.name() } -> std::convertible_to<std::string>;
      backend.perform(operation);
      backend.abort(why);
    };

/// A backend that can have several operations in progress. prepare() is called at once by the thread that starts the
/// operation (any thread), so that the operation does not wait for work put into the stream `after` later. The function
/// that it returns is called by the performing thread, in order, and puts the operation into the backend's queue. That
/// function returns a query whether the operation is done, which does not wait and throws what perform() throws; null:
/// it is done. perform() is not called while an operation is in progress. These functions keep the backend alive.
template <class B>
concept PipelinedBackend = CommunicatorBackend<B> && requires(B& backend, const collective::Operation& operation) {
  { backend.prepare(operation) } -> std::convertible_to<std::function<std::function<bool()>()>>;
};

struct CommunicatorOptions {
  Seconds timeout = 60;  ///< seconds that a collective waits for the other ranks; then a GroupError names the late ones
};

/// Collectives among the ranks of one generation of a group. The results are bitwise equal on all ranks. Copies are the
/// same communicator, and a const one can do all that any other can.
class Communicator {
 public:
  template <CommunicatorBackend B>
  explicit Communicator(std::unique_ptr<B> backend) : self_(std::make_shared<Holder<B>>(std::move(backend))) {}

  int rank() const { return self_->rank(); }
  int size() const { return self_->size(); }
  std::string name() const { return self_->name(); }

  /// In place: each element is reduced over all ranks. The mean of integers is rounded towards zero.
  template <Element T>
  void all_reduce(std::span<T> data, Reduction reduction = Reduction::sum) const {
    perform(collective::AllReduce{data.data(), data.size(), element_type<T>, reduction});
  }
  template <Element T>
  T all_reduce(T value, Reduction reduction = Reduction::sum) const {
    all_reduce(std::span<T>(&value, 1), reduction);
    return value;
  }
  template <Element T>
  void broadcast(std::span<T> data, int root = 0) const {
    perform(collective::Broadcast{data.data(), data.size(), element_type<T>, root});
  }
  /// `all` must have the length of `mine` times size(); otherwise an Error of kind `usage`.
  template <Element T>
  void all_gather(std::type_identity_t<std::span<const T>> mine, std::span<T> all) const {
    perform(all_gather_operation(mine, all));
  }
  /// `all` must have the length of `mine` times size(); otherwise an Error of kind `usage`.
  template <Element T>
  void reduce_scatter(std::type_identity_t<std::span<const T>> all, std::span<T> mine,
                      Reduction reduction = Reduction::sum) const {
    perform(reduce_scatter_operation(all, mine, reduction));
  }
  void barrier() const { perform(collective::Barrier{}); }

  /// The operations of all_gather() and reduce_scatter(), with their checks, for start().
  template <Element T>
  collective::AllGather all_gather_operation(std::type_identity_t<std::span<const T>> mine, std::span<T> all) const {
    if (all.size() != mine.size() * static_cast<std::size_t>(size()))
      fail(Errc::usage, "all_gather of {} elements of {} ranks into {}", mine.size(), size(), all.size());
    return {mine.data(), all.data(), mine.size(), element_type<T>};
  }
  template <Element T>
  collective::ReduceScatter reduce_scatter_operation(std::type_identity_t<std::span<const T>> all, std::span<T> mine,
                                                     Reduction reduction) const {
    if (all.size() != mine.size() * static_cast<std::size_t>(size()))
      fail(Errc::usage, "reduce_scatter of {} elements into {} of each of {} ranks", all.size(), mine.size(), size());
    return {all.data(), mine.data(), mine.size(), element_type<T>, reduction};
  }

  /// May be called from any thread. All operations of this rank end with an error. On the other ranks, an operation
  /// that is nearly done may still succeed.
  void abort(const GroupError& why) const { self_->abort(why); }

  /// A function that calls abort(). It does not keep the communicator alive, may be called from any thread, and does
  /// nothing once the communicator is destroyed.
  std::function<void(const GroupError&)> abort_function() const {
    return [weak = std::weak_ptr<Interface>(self_)](const GroupError& why) {
      if (const auto self = weak.lock()) self->abort(why);
    };
  }

  /// A function that tells whether an operation of this rank is not done yet. It does not keep the communicator alive
  /// and may be called from any thread.
  std::function<bool()> busy_function() const { return self_->order.busy_function(); }

  /// Blocks until the operation is done. It runs after all operations started or performed before, on any thread.
  void perform(const collective::Operation& operation) const {
    Interface& self = *self_;
    self.order.run([&] { self.perform(operation); });
  }

  /// Performs the operation on a thread of the communicator, in order with all others. `handler` is called on that
  /// thread with the exception of perform(), or null. It may start operations; it must not block on this communicator,
  /// nor throw. If the last copy of the communicator is destroyed before an operation is done, the operation ends with
  /// a GroupError of kind `changed`.
  void start(const collective::Operation& operation, std::function<void(std::exception_ptr)> handler) const {
    self_->order.start(self_->prepare(operation), std::move(handler));
  }

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    virtual std::string name() const = 0;
    virtual void perform(const collective::Operation&) = 0;
    virtual detail::OperationOrder::Begin prepare(const collective::Operation&) = 0;
    virtual void abort(const GroupError&) = 0;
    detail::OperationOrder order;
  };
  template <class B>
  struct Holder final : Interface {
    explicit Holder(std::unique_ptr<B> b) : backend(std::move(b)) {}
    ~Holder() override {
      const GroupError why(GroupError::Kind::changed, "the communicator was destroyed before this operation was done");
      order.close(std::make_exception_ptr(why), [&] { backend->abort(why); });
    }
    int rank() const override { return backend->rank(); }
    int size() const override { return backend->size(); }
    std::string name() const override { return backend->name(); }
    void perform(const collective::Operation& operation) override { backend->perform(operation); }
    detail::OperationOrder::Begin prepare(const collective::Operation& operation) override {
      if constexpr (PipelinedBackend<B>) {
        return backend->prepare(operation);
      } else {
        return [self = this, operation]() -> detail::OperationOrder::IsDone {  // the destructor waits for this
          self->backend->perform(operation);
          return nullptr;
        };
      }
    }
    void abort(const GroupError& why) override { backend->abort(why); }
    std::unique_ptr<B> backend;
  };
  std::shared_ptr<Interface> self_;
};

}  // namespace hypertune::inline v0
