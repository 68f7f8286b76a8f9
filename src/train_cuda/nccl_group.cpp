// Part of hypertune::train_cuda: operations, from the queue to completion.
#include "nccl_group.hpp"

#include "nccl_operation.hpp"

#include <hypertune/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <variant>

namespace hypertune::inline v0::detail {

using namespace collective;

NcclGroup::NcclGroup(GroupPlace place, Rendezvous& rendezvous, const CommunicatorOptions& options,
                     const NcclOptions& nccl)
    : place_(std::move(place)), rendezvous_(rendezvous), options_(options), nccl_(nccl) {
  if (!(options_.timeout > 0))
    fail(Errc::usage, "a communicator's timeout is {} s; it is to be above 0", options_.timeout);
  int devices = 0;
  if (const cudaError_t result = cudaGetDeviceCount(&devices); result != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    if (is_device_lost(result))
      throw GroupError(GroupError::Kind::device,
                       fmt::format("CUDA: looking for devices: {}", cudaGetErrorString(result)));
    fail(Errc::resources, "NCCL needs a GPU, and there is none: {}", cudaGetErrorString(result));
  }
  if (nccl_.device < 0 || nccl_.device >= devices)
    fail(Errc::resources, "there is no device {} for NCCL: {} can be seen here", nccl_.device, devices);
  const DeviceGuard guard(nccl_.device);
  device_ = std::make_shared<NcclDevice>(nccl_.device, nccl_.staging);
}

std::uint64_t NcclGroup::next_number(const Operation& operation) {
  if (const auto* broadcast = std::get_if<Broadcast>(&operation))
    if (broadcast->root < 0 || broadcast->root >= size())
      fail(Errc::usage, "rank {} is the root of a broadcast among {}", broadcast->root, size());
  check_alive();
  return ++operations_;
}

void NcclGroup::perform(const Operation& operation) {
  const auto request = begin(operation, mark(operation));
  poll([&] { return is_done(*request); });
}

std::shared_ptr<Event> NcclGroup::mark(const Operation& operation) {
  if (std::holds_alternative<Barrier>(operation)) return nullptr;
  const DeviceGuard guard(nccl_.device);
  const auto after = static_cast<cudaStream_t>(after_of(operation) ? after_of(operation) : nccl_.stream);
  std::shared_ptr<Event> marked;
  or_give_up([&] {
    require_no_capture(after);
    marked = std::make_shared<Event>(make_event());
    check_cuda(cudaEventRecord(marked->get(), after), "recording an event");
  });
  return marked;
}

std::shared_ptr<NcclRequest> NcclGroup::begin(const Operation& operation, std::shared_ptr<Event> marked) {
  const DeviceGuard guard(nccl_.device);
  // A usage error is detected before anything has begun, and leaves the communicator unchanged.
  const bool direct = in_device_memory(operation, nccl_.device);
  const std::size_t most = direct ? 0 : device_->staging.piece(operation, size());
  auto request = std::make_shared<NcclRequest>();
  request->number = next_number(operation);
  request->marked = std::move(marked);
  request->one_way = std::holds_alternative<Broadcast>(operation);
  under_way_.push_back(request);
  or_give_up([&] {
    if (request->marked)
      check_cuda(cudaStreamWaitEvent(device_->stream.get(), request->marked->get(), 0), "making a stream wait");
    if (direct)
      request->done = enqueue(operation, *request);
    else
      perform_staged(operation, most, *request);
  });
  return request;
}

bool NcclGroup::is_done(NcclRequest& request) {
  if (request.over) return true;
  const DeviceGuard guard(nccl_.device);
  or_give_up([&] { advance(); });
  return request.over;
}

void NcclGroup::start(const Operation& operation) {
  {
    const DeviceGuard guard(nccl_.device);
    if (!in_device_memory(operation, nccl_.device))
      fail(Errc::usage, "only what is in the memory of the device can be started; perform it");
  }
  started_ = begin(operation, mark(operation));
}

void NcclGroup::finish() {
  check_alive();
  if (started_) poll([&] { return is_done(*started_); });
}

void NcclGroup::order(cudaStream_t stream) {
  const DeviceGuard guard(nccl_.device);
  if (started_) check_cuda(cudaStreamWaitEvent(stream, started_->done.get(), 0), "making a stream wait");
}

Event NcclGroup::enqueue(const Operation& operation, NcclRequest& request) {
  NcclDevice& device = *device_;
  check_nccl(device.handle.call(
                 [&](ncclComm_t comm) { return launch(operation, device.barrier.get(), comm, device.stream.get()); }),
             "a collective", request.number);
  // Until NCCL reports success the operation may not be in the stream yet, and an event would be recorded too early.
  wait_for(request, [&] { return device.handle.state() == ncclSuccess; });
  Event done = make_event();
  check_cuda(cudaEventRecord(done.get(), device.stream.get()), "recording an event");
  return done;
}

void NcclGroup::perform_staged(const Operation& operation, std::size_t most, NcclRequest& request) {
  NcclDevice& device = *device_;
  const auto wait_for_stream = [&] {
    check_cuda(cudaEventRecord(device.staged.get(), device.stream.get()), "recording an event");
    wait_for(request, [&] { return is_complete(device.staged, "a collective"); });
  };
  wait_for(request, [&] { return is_first(request); });  // only one operation may use the staging memory
  wait_for_stream();                                     // the user's stream may still be writing to host memory
  const std::size_t all = count_of(operation);
  for (Piece piece; piece.begin < all; piece.begin += piece.count) {
    piece.count = std::min(most, all - piece.begin);
    const Operation staged = device.staging.staged(operation, piece);
    device.staging.load(operation, piece, size(), rank(), device.stream.get());
    check_nccl(device.handle.call([&](ncclComm_t comm) { return launch(staged, nullptr, comm, device.stream.get()); }),
               "a collective", request.number);
    wait_for(request, [&] { return device.handle.state() == ncclSuccess; });
    device.staging.store(operation, piece, size(), device.stream.get());
    wait_for_stream();
    device.staging.unload(operation, piece, size());
  }
  end_first();
}

// Removes operations that are done, whichever is asked for, so that the time of the next one begins.
void NcclGroup::advance() {
  while (!under_way_.empty()) {
    NcclRequest& first = *under_way_.front();
    if (!first.done.get() || !is_over(first, [&] { return is_complete(first.done, "a collective"); })) return;
    end_first();
  }
}

void NcclGroup::end_first() {
  NcclRequest& first = *under_way_.front();
  first.over = true;
  arrived_ = first.number;
  if (first.one_way && size() > 1) announce_one(first.number);
  under_way_.pop_front();
}

std::uint64_t NcclGroup::arrived() {
  for (const auto& request : under_way_) {
    if (!request->arrived && request->marked && !is_complete(*request->marked, "what is before a collective")) break;
    request->arrived = true;
    arrived_ = request->number;
  }
  return arrived_;
}

// Aborted or failed operations end on the device as if they were done. So `is_done` is returned last.
template <class Done>
bool NcclGroup::is_over(NcclRequest& request, Done done) {
  const bool is_done = done();
  check_alive();
  const ncclResult_t state = device_->handle.state();
  if (state != ncclSuccess && state != ncclInProgress) {
    check_alive();  // it may have been aborted in between
    give_up_failed(state, "a collective", request.number);
  }
  if (is_done) return true;
  if (!is_first(request)) return false;  // its time begins when those before it are done
  const auto now = std::chrono::steady_clock::now();
  const bool was_here = request.arrived, is_here = arrived() >= request.number;
  if (!request.begun || was_here != is_here) request.begun = now;  // it waits for its own stream, then for the others
  const auto limit = steady_duration(options_.timeout);
  if (now >= *request.begun + limit) {
    if (!is_here) give_up_behind(request.number);
    give_up_late(request.number);
  }
  if (announced_ < request.number && now - *request.begun > limit / 4) announce(arrived_);
  return false;
}

template <class Done>
void NcclGroup::wait_for(NcclRequest& request, Done done) {
  poll([&] {
    advance();
    return is_over(request, done);
  });
}

void NcclGroup::check_nccl(ncclResult_t result, const char* what, std::uint64_t number) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  check_alive();
  give_up_failed(result, what, number);
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
  std::shared_ptr<detail::Event> marked;
  std::exception_ptr error;
  try {
    marked = group_->mark(operation);
  } catch (...) { error = std::current_exception(); }
  return [group = group_, operation, marked, error]() -> std::function<bool()> {
    if (error) std::rethrow_exception(error);
    const auto request = group->begin(operation, marked);
    return [group, request] { return group->is_done(*request); };
  };
}
void NcclCommunicator::abort(const GroupError& why) { group_->abort(why); }
void NcclCommunicator::start(const collective::Operation& operation) { group_->start(operation); }
void NcclCommunicator::finish() { group_->finish(); }
void NcclCommunicator::order(void* stream) { group_->order(static_cast<cudaStream_t>(stream)); }

}  // namespace hypertune::inline v0
