// Part of hypertune::train_cuda: operations, from the queue to the end.
#include "nccl_group.hpp"

#include <hypertune/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

namespace hypertune::inline v0::detail {

namespace {

using namespace collective;

constexpr double abort_seconds = 30;  // what NCCL and the device may take to leave what was aborted
constexpr double finish_seconds = 10;

ncclDataType_t nccl_type(ElementType type) {
  switch (type) {
    case ElementType::float32: return ncclFloat32;
    case ElementType::float64: return ncclFloat64;
    case ElementType::float16: return ncclFloat16;
    case ElementType::bfloat16: return ncclBfloat16;
    case ElementType::int32: return ncclInt32;
    case ElementType::int64: return ncclInt64;
    case ElementType::uint8: break;
  }
  return ncclUint8;
}
ncclRedOp_t nccl_operation(Reduction reduction) {
  switch (reduction) {
    case Reduction::mean: return ncclAvg;
    case Reduction::min: return ncclMin;
    case Reduction::max: return ncclMax;
    case Reduction::sum: break;
  }
  return ncclSum;
}

// An operation on memory of the device, put into NCCL's queue.
ncclResult_t launch(const Operation& operation, void* barrier, ncclComm_t comm, cudaStream_t stream) {
  return std::visit(
      [&](const auto& o) {
        using O = std::remove_cvref_t<decltype(o)>;
        if constexpr (std::is_same_v<O, AllReduce>)
          return ncclAllReduce(o.data, o.data, o.count, nccl_type(o.type), nccl_operation(o.reduction), comm, stream);
        else if constexpr (std::is_same_v<O, Broadcast>)
          return ncclBroadcast(o.data, o.data, o.count, nccl_type(o.type), o.root, comm, stream);
        else if constexpr (std::is_same_v<O, AllGather>)
          return ncclAllGather(o.mine, o.all, o.count, nccl_type(o.type), comm, stream);
        else if constexpr (std::is_same_v<O, ReduceScatter>)
          return ncclReduceScatter(o.all, o.mine, o.count, nccl_type(o.type), nccl_operation(o.reduction), comm,
                                   stream);
        else
          return ncclAllReduce(barrier, barrier, 1, ncclUint8, ncclMax, comm, stream);
      },
      operation);
}

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

std::size_t count_of(const Operation& operation) {
  return std::visit(
      [](const auto& o) -> std::size_t {
        if constexpr (requires { o.count; })
          return o.count;
        else
          return 1;
      },
      operation);
}
void* after_of(const Operation& operation) {
  return std::visit(
      [](const auto& o) -> void* {
        if constexpr (requires { o.after; })
          return o.after;
        else
          return nullptr;
      },
      operation);
}

}  // namespace

NcclGroup::NcclGroup(GroupPlace place, Rendezvous& rendezvous, const CommunicatorOptions& options,
                     const NcclOptions& nccl)
    : place_(std::move(place)), rendezvous_(rendezvous), options_(options), nccl_(nccl) {
  if (!(options_.timeout > 0))
    fail(Errc::usage, "a communicator's timeout is {} s; it is to be above 0", options_.timeout);
  int devices = 0;
  if (const cudaError_t result = cudaGetDeviceCount(&devices); result != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    fail(Errc::resources, "NCCL needs a GPU, and there is none: {}", cudaGetErrorString(result));
  }
  if (nccl_.device < 0 || nccl_.device >= devices)
    fail(Errc::resources, "there is no device {} for NCCL: {} can be seen here", nccl_.device, devices);
  const DeviceGuard guard(nccl_.device);
  // All that is allocated is allocated now: later, another rank's collective may be on this device, waiting for this
  // rank.
  staging_ = Staging(nccl_.staging);
  barrier_ = allocate_on_device(1);
  staged_ = make_event();
  stream_ = make_stream();
}

NcclGroup::~NcclGroup() {
  try {
    const DeviceGuard guard(nccl_.device);
    handle_.finish(std::min(options_.timeout, finish_seconds));
  } catch (const Error&) { handle_.abort(); }  // the device is lost
}

std::uint64_t NcclGroup::next_number(const Operation& operation) {
  if (const auto* broadcast = std::get_if<Broadcast>(&operation))
    if (broadcast->root < 0 || broadcast->root >= size())
      fail(Errc::usage, "rank {} is the root of a broadcast among {}", broadcast->root, size());
  check_alive();
  return ++operations_;
}

void NcclGroup::perform(const Operation& operation) {
  const SteadyTime begun = std::chrono::steady_clock::now();
  NcclFlight flight = begin(operation, mark(operation));
  flight.begun = begun;
  wait(flight);
}

Event NcclGroup::mark(const Operation& operation) {
  Event marked;
  if (std::holds_alternative<Barrier>(operation)) return marked;
  const DeviceGuard guard(nccl_.device);
  or_give_up([&] {
    void* const after = after_of(operation) ? after_of(operation) : nccl_.stream;
    marked = make_event();
    check_cuda(cudaEventRecord(marked.get(), static_cast<cudaStream_t>(after)), "recording an event");
  });
  return marked;
}

NcclFlight NcclGroup::begin(const Operation& operation, const Event& marked) {
  const DeviceGuard guard(nccl_.device);
  // A mistake of the caller's is found before anything is begun, and leaves the communicator as it was.
  const bool direct = in_device_memory(operation);
  const std::size_t most = direct ? 0 : staging_.piece(operation, size());
  NcclFlight flight;
  flight.number = next_number(operation);
  or_give_up([&] {
    if (marked.get()) check_cuda(cudaStreamWaitEvent(stream_.get(), marked.get(), 0), "making a stream wait");
    const auto deadline = steady_after(options_.timeout);
    if (direct)
      flight.done = enqueue(operation, flight.number, deadline);
    else
      perform_staged(operation, most, flight.number, deadline);
  });
  return flight;
}

bool NcclGroup::is_done(NcclFlight& flight) {
  if (!flight.done.get()) return true;
  const DeviceGuard guard(nccl_.device);
  if (!flight.begun) flight.begun = std::chrono::steady_clock::now();
  bool done = false;
  or_give_up([&] {
    done = is_over([&] { return has_come(flight.done); }, flight.number, *flight.begun,
                   *flight.begun + steady_duration(options_.timeout));
  });
  return done;
}

void NcclGroup::wait(NcclFlight& flight) {
  poll([&] { return is_done(flight); });
}

void NcclGroup::start(const Operation& operation) {
  {
    const DeviceGuard guard(nccl_.device);
    if (!in_device_memory(operation))
      fail(Errc::usage, "only what is in the memory of the device can be started; perform it");
  }
  started_ = begin(operation, mark(operation));
}

void NcclGroup::finish() {
  check_alive();
  if (started_.done.get()) wait(started_);
}

void NcclGroup::order(cudaStream_t stream) {
  const DeviceGuard guard(nccl_.device);
  if (started_.done.get()) check_cuda(cudaStreamWaitEvent(stream, started_.done.get(), 0), "making a stream wait");
}

bool NcclGroup::in_device_memory(const Operation& operation) const {
  return std::visit(
      Overloaded{
          [](const Barrier&) { return true; },
          [&](const AllGather& o) { return on_device(o.mine, nccl_.device) && on_device(o.all, nccl_.device); },
          [&](const ReduceScatter& o) { return on_device(o.all, nccl_.device) && on_device(o.mine, nccl_.device); },
          [&](const auto& o) { return on_device(o.data, nccl_.device); },
      },
      operation);
}

Event NcclGroup::enqueue(const Operation& operation, std::uint64_t number, SteadyTime deadline) {
  check_nccl(handle_.call([&](ncclComm_t comm) { return launch(operation, barrier_.get(), comm, stream_.get()); }),
             "a collective", number);
  // Until NCCL says success it may not have put anything into the stream, and an event would come too early.
  wait_for([&] { return handle_.state() == ncclSuccess; }, number, deadline);
  Event done = make_event();
  check_cuda(cudaEventRecord(done.get(), stream_.get()), "recording an event");
  return done;
}

void NcclGroup::perform_staged(const Operation& operation, std::size_t most, std::uint64_t number,
                               SteadyTime deadline) {
  const auto wait_for_stream = [&] {
    check_cuda(cudaEventRecord(staged_.get(), stream_.get()), "recording an event");
    wait_for([&] { return has_come(staged_); }, number, deadline);
  };
  wait_for_stream();  // what the user's stream writes into host memory is there
  const std::size_t all = count_of(operation);
  for (Piece piece; piece.begin < all; piece.begin += piece.count) {
    piece.count = std::min(most, all - piece.begin);
    const Operation staged = staging_.staged(operation, piece);
    staging_.load(operation, piece, size(), rank(), stream_.get());
    check_nccl(handle_.call([&](ncclComm_t comm) { return launch(staged, nullptr, comm, stream_.get()); }),
               "a collective", number);
    wait_for([&] { return handle_.state() == ncclSuccess; }, number, deadline);
    staging_.store(operation, piece, size(), stream_.get());
    wait_for_stream();
    staging_.unload(operation, piece, size());
  }
}

bool NcclGroup::has_come(const Event& event) {
  const cudaError_t result = cudaEventQuery(event.get());
  if (result == cudaErrorNotReady) return false;
  check_cuda(result, "a collective");
  return true;
}

// Done or not: what was aborted, or failed, ends on the device as if it were done. So that is asked last.
template <class Done>
bool NcclGroup::is_over(Done done, std::uint64_t number, SteadyTime begun, SteadyTime deadline) {
  const bool is_done = done();
  check_alive();
  const ncclResult_t state = handle_.state();
  if (state != ncclSuccess && state != ncclInProgress) {
    check_alive();  // it was aborted in between
    give_up_failed(state, "a collective", number);
  }
  if (is_done) return true;
  const auto now = std::chrono::steady_clock::now();
  if (now >= deadline) give_up_late(number);
  if (announced_ < number && now - begun > (deadline - begun) / 4) announce(operations_);
  return false;
}

template <class Done>
void NcclGroup::wait_for(Done done, std::uint64_t number, SteadyTime deadline) {
  const auto begun = std::chrono::steady_clock::now();
  poll([&] { return is_over(done, number, begun, deadline); });
}

void NcclGroup::check_alive() {
  {
    const std::lock_guard guard(mutex_);
    if (!why_) return;
  }
  throw_why();
}

void NcclGroup::check_nccl(ncclResult_t result, const char* what, std::uint64_t number) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  check_alive();
  give_up_failed(result, what, number);
}

void NcclGroup::give_up(const GroupError& why) {
  end(why);
  throw_why();
}

// The buffers are the caller's again when this throws: so it waits until NCCL and the device have left them.
void NcclGroup::throw_why() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(abort_seconds), [&] { return ended_; });
  const GroupError why = *why_;
  lock.unlock();
  drain();
  throw why;
}

void NcclGroup::end(const GroupError& why) {
  {
    const std::lock_guard guard(mutex_);
    if (why_) return;
    why_ = why;
  }
  changed_.notify_all();
  try {
    const DeviceGuard guard(nccl_.device);
    if (nccl_.revoke)
      handle_.revoke(abort_seconds);
    else
      handle_.abort();
  } catch (const Error&) { handle_.abort(); }  // the device is lost
  {
    const std::lock_guard guard(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

// For one that a next generation replaces. In good health it is given back in order: its peers do the same.
void NcclGroup::retire(bool in_order) {
  const GroupError why(GroupError::Kind::changed, "NCCL: this communicator is of an earlier generation");
  if (!in_order) return end(why);
  {
    const std::lock_guard guard(mutex_);
    if (!why_) why_ = why;
  }
  changed_.notify_all();
  handle_.finish(std::min(options_.timeout, finish_seconds));
  {
    const std::lock_guard guard(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

void NcclGroup::drain() {
  const auto deadline = steady_after(abort_seconds);
  Pauses pauses;
  while (cudaStreamQuery(stream_.get()) == cudaErrorNotReady && std::chrono::steady_clock::now() < deadline)
    pauses.pause();
  static_cast<void>(cudaGetLastError());
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

NcclCommunicator NcclCommunicator::connect(const GroupPlace& place, Rendezvous& rendezvous,
                                           const CommunicatorOptions& options, const NcclOptions& nccl) {
  auto group = std::make_shared<detail::NcclGroup>(place, rendezvous, options, nccl);
  group->connect(nullptr);
  return NcclCommunicator(std::move(group));
}
NcclCommunicator NcclCommunicator::regroup(const GroupPlace& next, Rendezvous& rendezvous) {
  auto group = std::make_shared<detail::NcclGroup>(next, rendezvous, group_->options(), group_->nccl());
  group->connect(group_.get());
  return NcclCommunicator(std::move(group));
}
int NcclCommunicator::rank() const { return group_->rank(); }
int NcclCommunicator::size() const { return group_->size(); }
std::string NcclCommunicator::origin() const { return group_->origin(); }
void NcclCommunicator::perform(const collective::Operation& operation) { group_->perform(operation); }
std::function<std::function<bool()>()> NcclCommunicator::prepare(const collective::Operation& operation) {
  auto marked = std::make_shared<detail::Event>();  // shared, as a std::function is copied
  std::exception_ptr error;
  try {
    *marked = group_->mark(operation);
  } catch (...) { error = std::current_exception(); }
  return [group = group_, operation, marked, error]() -> std::function<bool()> {
    if (error) std::rethrow_exception(error);
    const auto flight = std::make_shared<detail::NcclFlight>(group->begin(operation, *marked));
    return [group, flight] { return group->is_done(*flight); };
  };
}
void NcclCommunicator::abort(const GroupError& why) { group_->abort(why); }
void NcclCommunicator::start(const collective::Operation& operation) { group_->start(operation); }
void NcclCommunicator::finish() { group_->finish(); }
void NcclCommunicator::order(void* stream) { group_->order(static_cast<cudaStream_t>(stream)); }

}  // namespace hypertune::inline v0
