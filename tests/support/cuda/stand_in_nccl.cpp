// NCCL as a stand-in: ranks are threads of this process, whose streams meet in a World. All under one mutex. It keeps a
// list of what NCCL forbids: two calls with a communicator at once, calls while it is in progress, use after it was
// given back.
#include "support/cuda/stand_in.hpp"
#include "support/cuda/stand_in_reduce.hpp"

#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using stand_in::Bytes;
using stand_in::Call;
using stand_in::Kind;
using stand_in::result_of;

namespace {

struct Meeting {
  std::vector<Bytes> inputs;
  int arrived = 0, left = 0;
  Call call;
  Bytes result;
};
struct World {
  std::string name;
  int size = 0;
  std::vector<ncclComm*> members;
  std::map<int, Meeting> meetings;
  bool complete() const { return std::find(members.begin(), members.end(), nullptr) == members.end(); }
};

}  // namespace

struct ncclComm {
  std::shared_ptr<World> world;
  int rank = 0;
  stand_in::Faults faults;
  std::atomic<int> callers{0};
  int questions = 0;  // how often it is still in progress when asked
  int operations = 0, running = 0, children = 0;
  ncclResult_t error = ncclSuccess;
  bool aborted = false, revoked = false, finalized = false, given_back = false;
  std::function<void()> launch;  // what goes into the stream when it is no longer in progress
  ncclComm* child = nullptr;
  ncclComm_t* made = nullptr;
};

namespace {

struct Library {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::unique_ptr<ncclComm>> comms;  // kept, so that a use after the end is seen
  std::map<std::string, std::shared_ptr<World>> worlds;
  std::map<int, stand_in::Faults> faults;
  int ids = 0, questions = 1;
  bool remote_errors = false, buffered_broadcasts = false, grow_open = false;
};
Library& library() {
  static Library it;
  return it;
}

// One call with a communicator: two at once are a mistake, whatever a mutex in here makes of them.
class Inside {
 public:
  explicit Inside(ncclComm* comm, const char* name) : comm_(comm) {
    if (comm && comm->callers.fetch_add(1) > 0) stand_in::report_misuse(std::string("two calls at once: ") + name);
    std::this_thread::yield();
    lock_ = std::unique_lock(library().mutex);
    if (comm && comm->given_back) stand_in::report_misuse(std::string(name) + " of a communicator that was given back");
  }
  ~Inside() {
    lock_.unlock();
    if (comm_) comm_->callers.fetch_sub(1);
  }
  bool usable() const { return comm_ && !comm_->given_back; }
  std::unique_lock<std::mutex>& lock() { return lock_; }

 private:
  ncclComm* comm_;
  std::unique_lock<std::mutex> lock_;
};

bool in_progress(const ncclComm& comm) {
  return comm.questions > 0 || comm.launch || comm.child || !comm.world->complete() || comm.faults.init_in_progress ||
         (comm.finalized && comm.running > 0);
}

ncclComm* join(const std::string& name, int size, int rank) {
  Library& lib = library();
  auto& world = lib.worlds[name];
  if (!world)
    world = std::make_shared<World>(World{name, size, std::vector<ncclComm*>(static_cast<std::size_t>(size)), {}});
  auto& place = world->members.at(static_cast<std::size_t>(rank));
  if (place || world->size != size)
    stand_in::report_misuse("a rank came twice, or the ranks differ in how many they are");
  place = lib.comms.emplace_back(std::make_unique<ncclComm>()).get();
  place->world = world;
  place->rank = rank;
  place->questions = lib.questions;
  if (const auto found = lib.faults.find(rank); found != lib.faults.end()) place->faults = found->second;
  lib.changed.notify_all();
  return place;
}

// In the stream, as a kernel: it spins until all ranks are there or it is aborted, and an aborted one has written
// anything. One that is aborted before it begins touches no memory: that may be given back by then. On a device that is
// lost none begins, and its rank never takes part.
void kernel(ncclComm* comm, int number, const Call& call, cudaStream_t stream) {
  Library& lib = library();
  std::unique_lock lock(lib.mutex);
  const std::size_t ranks = static_cast<std::size_t>(comm->world->size),
                    bytes = call.count * stand_in::size_of(call.type);
  const auto leave = [&] {
    --comm->running;
    lib.changed.notify_all();
  };
  if (comm->aborted) return leave();
  if (comm->faults.async_error == number) {
    comm->error = comm->faults.error;
    lib.changed.notify_all();
  }
  if (comm->faults.hang == number || comm->error != ncclSuccess || stand_in::is_lost(stream)) {
    lib.changed.wait(lock, [&] { return comm->aborted; });
    return leave();
  }
  Meeting& meeting = comm->world->meetings[number];
  if (meeting.arrived++ == 0) {
    meeting.inputs.resize(ranks);
    meeting.call = call;
  } else if (meeting.call.kind != call.kind || meeting.call.count != call.count || meeting.call.type != call.type) {
    stand_in::report_misuse("the ranks' collectives differ");
  }
  const auto* from = static_cast<const std::byte*>(call.from);
  meeting.inputs[static_cast<std::size_t>(comm->rank)].assign(
      from, from + bytes * (call.kind == Kind::reduce_scatter ? ranks : 1));
  lib.changed.notify_all();
  // The root of a small broadcast needs nobody: what it has sent waits in buffers.
  const bool sent = lib.buffered_broadcasts && call.kind == Kind::broadcast && call.root == comm->rank;
  if (sent && meeting.arrived < comm->world->size) {
    ++meeting.left;
    return leave();
  }
  lib.changed.wait(lock, [&] { return comm->aborted || meeting.arrived == comm->world->size; });
  if (meeting.arrived == comm->world->size) {
    const Bytes result = result_of(call, meeting.inputs, comm->rank);
    std::memcpy(call.to, result.data(), result.size());
    if (++meeting.left == comm->world->size) comm->world->meetings.erase(number);
  }
  leave();
}

ncclResult_t collective(ncclComm_t comm, const Call& call, cudaStream_t stream) {
  const Inside inside(comm, "a collective");
  if (!inside.usable()) return ncclInvalidArgument;
  if (comm->revoked || comm->finalized) return ncclInvalidUsage;
  if (in_progress(*comm)) stand_in::report_misuse("a collective while the communicator is in progress");
  const std::size_t share = call.count * stand_in::size_of(call.type),
                    ranks = static_cast<std::size_t>(comm->world->size);
  if (!stand_in::is_device_memory(call.from, share * (call.kind == Kind::reduce_scatter ? ranks : 1)) ||
      !stand_in::is_device_memory(call.to, share * (call.kind == Kind::all_gather ? ranks : 1)))
    stand_in::report_misuse("a collective on what is not the device's memory");
  const int number = ++comm->operations;
  if (comm->faults.call_fails == number) return comm->faults.error;
  comm->launch = [=] {
    ++comm->running;
    stand_in::run_in_stream(stream, [=] { kernel(comm, number, call, stream); });
  };
  comm->questions = comm->faults.launch_in_progress == number ? 1'000'000'000 : library().questions;
  if (comm->questions > 0) return ncclInProgress;
  std::exchange(comm->launch, {})();
  return ncclSuccess;
}

// Kernels leave when they see it; peers notice where the network tells them.
void stop(ncclComm* comm, Inside& inside) {
  Library& lib = library();
  comm->aborted = true;
  comm->launch = {};
  if (lib.remote_errors)
    for (ncclComm* peer : comm->world->members)
      if (peer && peer != comm && !peer->aborted && peer->error == ncclSuccess) peer->error = ncclRemoteError;
  lib.changed.notify_all();
  lib.changed.wait(inside.lock(), [&] { return comm->running == 0; });
}

}  // namespace

namespace stand_in {

void reset_nccl() {
  Library& lib = library();
  const std::lock_guard guard(lib.mutex);
  lib.worlds.clear();
  lib.comms.clear();
  lib.faults.clear();
  lib.questions = 1;
  lib.remote_errors = lib.buffered_broadcasts = lib.grow_open = false;
}
int held_communicators() {
  const std::lock_guard guard(library().mutex);
  const auto& comms = library().comms;
  return static_cast<int>(
      std::count_if(comms.begin(), comms.end(), [](const auto& comm) { return !comm->given_back; }));
}
int operations_under_way(int rank) {
  const std::lock_guard guard(library().mutex);
  int sum = 0;
  for (const auto& comm : library().comms)
    if (comm->rank == rank && !comm->given_back) sum += comm->running;
  return sum;
}
void set_faults(int rank, const Faults& faults) {
  const std::lock_guard guard(library().mutex);
  library().faults[rank] = faults;
}
void set_progress_questions(int count) {
  const std::lock_guard guard(library().mutex);
  library().questions = count;
}
void set_buffered_broadcasts(bool on) {
  const std::lock_guard guard(library().mutex);
  library().buffered_broadcasts = on;
}
void open_grow() {
  const std::lock_guard guard(library().mutex);
  library().grow_open = true;
  library().changed.notify_all();
}
void set_remote_errors(bool on) {
  const std::lock_guard guard(library().mutex);
  library().remote_errors = on;
}

}  // namespace stand_in

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard guard(library().mutex);
  *id = {};
  const std::string text = "stand-in " + std::to_string(++library().ids);
  std::memcpy(id->internal, text.data(), text.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  const std::lock_guard guard(library().mutex);
  if (!config || config->blocking != 0) stand_in::report_misuse("the stand-in has non-blocking communicators only");
  *comm = join(id.internal, ranks, rank);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const Inside inside(comm, "ncclCommGetAsyncError");
  if (!inside.usable()) return ncclInvalidArgument;
  *error = ncclInProgress;
  if (comm->error != ncclSuccess) {
    *error = comm->error;
  } else if (comm->child) {
    if (!comm->child->world->complete()) return ncclSuccess;
    if (comm->made) *comm->made = comm->child;
    comm->child = nullptr;
  } else if (comm->questions > 0 && comm->world->complete()) {
    --comm->questions;
  } else if (comm->launch) {
    std::exchange(comm->launch, {})();
    *error = ncclSuccess;
  } else if (!in_progress(*comm)) {
    *error = ncclSuccess;
  }
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Inside inside(comm, "ncclCommFinalize");
  if (!inside.usable() || in_progress(*comm)) return ncclInvalidArgument;
  if (comm->revoked || comm->finalized) stand_in::report_misuse("ncclCommFinalize of a revoked one, or twice");
  comm->finalized = true;
  comm->questions = library().questions;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const Inside inside(comm, "ncclCommDestroy");
  if (!inside.usable()) return ncclInvalidArgument;
  if (in_progress(*comm) || !(comm->finalized || comm->revoked))
    stand_in::report_misuse("ncclCommDestroy of one that is not at rest: it would block");
  comm->given_back = true;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  Inside inside(comm, "ncclCommAbort");
  if (!inside.usable()) return ncclInvalidArgument;
  if (comm->child) comm->child->given_back = true;
  stop(comm, inside);
  comm->given_back = true;
  return ncclSuccess;
}
ncclResult_t ncclCommRevoke(ncclComm_t comm, int) {
  Inside inside(comm, "ncclCommRevoke");
  if (!inside.usable() || comm->revoked || comm->finalized) return ncclInvalidArgument;
  stop(comm, inside);
  comm->revoked = true;
  comm->error = ncclSuccess;
  comm->questions = library().questions;
  return ncclInProgress;
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* made, ncclConfig_t*, int) {
  const Inside inside(comm, "ncclCommShrink");
  if (!inside.usable() || count < 1 || in_progress(*comm)) return ncclInvalidArgument;
  std::sort(excluded, excluded + count);
  if (std::binary_search(excluded, excluded + count, comm->rank)) return ncclInvalidArgument;
  std::string name = comm->world->name + " without";
  for (int i = 0; i < count; ++i) name += " " + std::to_string(excluded[i]);
  name += "#" + std::to_string(++comm->children);
  const int rank = comm->rank - static_cast<int>(std::lower_bound(excluded, excluded + count, comm->rank) - excluded);
  *made = nullptr;
  comm->made = made;
  comm->child = join(name, comm->world->size - count, rank);
  return ncclInProgress;
}
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* id) {
  const Inside inside(comm, "ncclCommGetUniqueId");
  if (!inside.usable() || in_progress(*comm)) return ncclInvalidArgument;
  *id = {};
  const std::string text = "grown " + std::to_string(++library().ids);
  std::memcpy(id->internal, text.data(), text.size());
  // The others of the communicator get it from this one; here they find it by the communicator's name.
  library().worlds["id of " + comm->world->name] = std::make_shared<World>(World{text, 0, {}, {}});
  return ncclSuccess;
}
ncclResult_t ncclCommGrow(ncclComm_t comm, int ranks, const ncclUniqueId* id, int rank, ncclComm_t* made,
                          ncclConfig_t*) {
  Inside inside(comm, "ncclCommGrow");
  if (comm && comm->faults.grow_blocks) library().changed.wait(inside.lock(), [] { return library().grow_open; });
  if (comm && (!inside.usable() || in_progress(*comm) || comm->revoked || rank != -1 || ranks <= comm->world->size))
    return ncclInvalidArgument;
  if (!comm && !id) return ncclInvalidArgument;
  const std::string name = comm ? library().worlds.at("id of " + comm->world->name)->name : id->internal;
  *made = join(name, ranks, comm ? comm->rank : rank);
  if (comm) {
    comm->made = nullptr;
    comm->child = *made;
  }
  return ncclInProgress;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSystemError: return "unhandled system error";
    case ncclInternalError: return "internal error";
    case ncclRemoteError: return "remote process exited or there was a network error";
    default: return "an error";
  }
}
const char* ncclGetLastError(ncclComm_t comm) {
  const Inside inside(comm, "ncclGetLastError");
  return "";
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, {Kind::all_reduce, from, to, count, type, operation, 0}, stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return collective(comm, {Kind::broadcast, from, to, count, type, ncclSum, root}, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return collective(comm, {Kind::all_gather, from, to, count, type, ncclSum, 0}, stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                               ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, {Kind::reduce_scatter, from, to, count, type, operation, 0}, stream);
}

}  // extern "C"
