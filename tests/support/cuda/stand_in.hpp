// The tests' stand-ins for CUDA's runtime, NCCL and cuBLAS: memory of the host, streams that are threads, ranks that
// are threads. What follows is for tests: faults on demand, what is still held, and which rules of the real ones were
// broken.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace stand_in {

/// Everything as at the start. To be called when all has been given back.
void reset(int devices = 2);

struct Held {
  int streams = 0, events = 0, device_blocks = 0, pinned_blocks = 0, communicators = 0, blas = 0;
  friend bool operator==(const Held&, const Held&) = default;
};
Held held();
/// Calls that the real libraries forbid, or that would be undefined there.
std::vector<std::string> misuse();

/// Faults of one rank, in communicators that come to be after this. Operations count from 1.
struct Faults {
  bool init_in_progress = false;  ///< connecting does not end until it is aborted
  int launch_in_progress = 0;     ///< of this operation the launch does not end until it is aborted
  int hang = 0;                   ///< this operation never takes part, until it is aborted
  int call_fails = 0;             ///< the call of this operation returns `error`
  int async_error = 0;            ///< `error` is there some time after this operation was launched
  ncclResult_t error = ncclInternalError;
  bool grow_blocks = false;  ///< ncclCommGrow() does not return until open_grow()
};
void set_faults(int rank, const Faults& faults);
/// Operations of this rank that are in a stream, and not done.
int operations_under_way(int rank);
/// How often a launch, an init and others are still in progress when asked; 1.
void set_progress_questions(int count);
/// Ranks whose peer has aborted or was destroyed get ncclRemoteError, as over a network; else they wait for ever.
void set_remote_errors(bool on);
/// After this every call that has to do with the device or a stream of its fails: cudaErrorIllegalAddress.
void lose_device(int device);
/// The root of a broadcast is done as soon as it has sent, whoever has come.
void set_buffered_broadcasts(bool on);
/// What ncclCommGrow() of ranks with `grow_blocks` waits for.
void open_grow();
/// Devices on which there is a context, and what cudaSetDevice() and the first use of a device make.
std::vector<int> contexts();
/// cudaStreamBeginCapture() of the global mode by this thread, and its end: meanwhile many calls are forbidden to other
/// threads, too.
void set_capturing(cudaStream_t stream, bool on);

// Among the parts of the stand-in.
void reset_nccl();
int held_communicators();
int held_blas();
void report_misuse(const std::string& what);
bool is_device_memory(const void* memory, std::size_t bytes);
bool is_lost(cudaStream_t stream);  ///< its device is
void run_in_stream(cudaStream_t stream, std::function<void()> work);

}  // namespace stand_in
