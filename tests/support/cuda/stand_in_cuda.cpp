// CUDA's runtime as a stand-in: each stream is a thread that does one thing after another.
#include "support/cuda/stand_in.hpp"

#include <cuda.h>
#include <cuda_runtime.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

struct CUstream_st {
  CUstream_st() : thread([this] { run(); }) {}
  ~CUstream_st() {
    {
      const std::lock_guard guard(mutex);
      stop = true;
    }
    wake.notify_all();
    thread.join();
  }
  void push(std::function<void()> work) {
    {
      const std::lock_guard guard(mutex);
      queue.push_back(std::move(work));
    }
    wake.notify_all();
  }
  bool idle() {
    const std::lock_guard guard(mutex);
    return queue.empty() && !busy;
  }
  void wait() {
    std::unique_lock lock(mutex);
    wake.wait(lock, [&] { return queue.empty() && !busy; });
  }
  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return stop || !queue.empty(); });
      if (queue.empty()) return;
      const auto work = std::move(queue.front());
      queue.pop_front();
      busy = true;
      lock.unlock();
      work();
      lock.lock();
      busy = false;
      wake.notify_all();
    }
  }
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::function<void()>> queue;
  bool busy = false, stop = false;
  int device = 0;
  std::thread thread;
};

struct CUevent_st {
  struct State {
    std::mutex mutex;
    std::condition_variable wake;
    unsigned recorded = 0, reached = 0;
  };
  std::shared_ptr<State> state = std::make_shared<State>();
  int device = 0;
};

namespace {

struct Block {
  std::size_t size;
  cudaMemoryType type;
  int device;
};

struct Runtime {
  std::mutex mutex;
  int devices = 2;
  std::map<const std::byte*, Block> blocks;
  std::vector<std::string> misuse;
  std::set<int> contexts;
  std::set<cudaStream_t> capturing;
  std::atomic<int> streams{0}, events{0};
  std::set<int> lost;
};
Runtime& runtime() {
  static Runtime it;
  return it;
}
CUstream_st& default_stream() {
  static CUstream_st it;
  return it;
}
CUstream_st& of(cudaStream_t stream) { return stream ? *stream : default_stream(); }

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;

// Of what may not be called while a stream is captured.
void unsafe_in_capture(const char* name) {
  const std::lock_guard guard(runtime().mutex);
  if (!runtime().capturing.empty() && capture_mode != cudaStreamCaptureModeRelaxed)
    runtime().misuse.push_back(std::string(name) + " while a stream is captured");
}
void use_device() {
  const std::lock_guard guard(runtime().mutex);
  runtime().contexts.insert(current_device);
}
// What the context of a device answers to everything once a kernel in it has gone wrong.
cudaError_t fate_of(int device) {
  const std::lock_guard guard(runtime().mutex);
  if (!runtime().lost.contains(device)) return cudaSuccess;
  last_error = cudaErrorIllegalAddress;
  return cudaErrorIllegalAddress;
}
cudaError_t fate_of(cudaStream_t stream) { return fate_of(stream ? stream->device : current_device); }
cudaError_t not_ready_unless(bool ready) {
  if (!ready) last_error = cudaErrorNotReady;
  return ready ? cudaSuccess : cudaErrorNotReady;
}

const std::pair<const std::byte* const, Block>* find(const void* memory) {  // under the mutex
  const auto* at = static_cast<const std::byte*>(memory);
  auto& blocks = runtime().blocks;
  auto after = blocks.upper_bound(at);
  if (after == blocks.begin()) return nullptr;
  --after;
  return at < after->first + after->second.size ? &*after : nullptr;
}
cudaMemoryType type_of(const void* memory) {
  const std::lock_guard guard(runtime().mutex);
  const auto* block = find(memory);
  return block ? block->second.type : cudaMemoryTypeUnregistered;
}

cudaError_t allocate(void** pointer, std::size_t size, cudaMemoryType type) {
  if (const cudaError_t fate = fate_of(current_device); fate != cudaSuccess) return fate;
  unsafe_in_capture("allocating");
  use_device();
  auto* memory = new std::byte[size];
  std::memset(memory, 0x5a, size);  // not what anybody expects
  const std::lock_guard guard(runtime().mutex);
  runtime().blocks[memory] = {size, type, current_device};
  *pointer = memory;
  return cudaSuccess;
}
cudaError_t release(void* pointer, cudaMemoryType type) {
  if (!pointer) return cudaSuccess;
  unsafe_in_capture("freeing");
  {
    const std::lock_guard guard(runtime().mutex);
    const auto found = runtime().blocks.find(static_cast<std::byte*>(pointer));
    if (found == runtime().blocks.end() || found->second.type != type) {
      runtime().misuse.emplace_back("memory was freed that was not allocated so");
      return cudaErrorInvalidValue;
    }
    runtime().blocks.erase(found);
  }
  delete[] static_cast<std::byte*>(pointer);
  return cudaSuccess;
}

}  // namespace

namespace stand_in {

void reset(int devices) {
  reset_nccl();
  const std::lock_guard guard(runtime().mutex);
  runtime().devices = devices;
  runtime().misuse.clear();
  runtime().contexts.clear();
  runtime().capturing.clear();
  runtime().lost.clear();
}
std::vector<int> contexts() {
  const std::lock_guard guard(runtime().mutex);
  return {runtime().contexts.begin(), runtime().contexts.end()};
}
void set_capturing(cudaStream_t stream, bool on) {
  const std::lock_guard guard(runtime().mutex);
  if (on)
    runtime().capturing.insert(stream);
  else
    runtime().capturing.erase(stream);
}
Held held() {
  Held held{runtime().streams, runtime().events, 0, 0, held_communicators(), held_blas()};
  const std::lock_guard guard(runtime().mutex);
  for (const auto& [_, block] : runtime().blocks)
    ++(block.type == cudaMemoryTypeDevice ? held.device_blocks : held.pinned_blocks);
  return held;
}
std::vector<std::string> misuse() {
  const std::lock_guard guard(runtime().mutex);
  return runtime().misuse;
}
void report_misuse(const std::string& what) {
  const std::lock_guard guard(runtime().mutex);
  runtime().misuse.push_back(what);
}
void lose_device(int device) {
  const std::lock_guard guard(runtime().mutex);
  runtime().lost.insert(device);
}
bool is_lost(cudaStream_t stream) {
  const std::lock_guard guard(runtime().mutex);
  return runtime().lost.contains(of(stream).device);
}
bool is_device_memory(const void* memory, std::size_t bytes) {
  const std::lock_guard guard(runtime().mutex);
  const auto* block = find(memory);
  return block && block->second.type == cudaMemoryTypeDevice &&
         static_cast<const std::byte*>(memory) + bytes <= block->first + block->second.size;
}
void run_in_stream(cudaStream_t stream, std::function<void()> work) { of(stream).push(std::move(work)); }

}  // namespace stand_in

extern "C" {

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    default: return "an error";
  }
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaGetDeviceCount(int* count) {
  const std::lock_guard guard(runtime().mutex);
  *count = runtime().devices;
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  const std::lock_guard guard(runtime().mutex);
  if (device < 0 || device >= runtime().devices) return cudaErrorInvalidDevice;
  current_device = device;
  runtime().contexts.insert(device);  // as since CUDA 12
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t fate = fate_of(current_device); fate != cudaSuccess) return fate;
  default_stream().wait();
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** pointer, size_t size) { return allocate(pointer, size, cudaMemoryTypeDevice); }
cudaError_t cudaFree(void* pointer) { return release(pointer, cudaMemoryTypeDevice); }
cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned int) {
  return allocate(pointer, size, cudaMemoryTypeHost);
}
cudaError_t cudaFreeHost(void* pointer) { return release(pointer, cudaMemoryTypeHost); }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  const std::lock_guard guard(runtime().mutex);
  *attributes = {};
  if (const auto* block = find(pointer)) {
    attributes->type = block->second.type;
    attributes->device = block->second.device;
  }
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  if (const cudaError_t fate = fate_of(stream); fate != cudaSuccess) return fate;
  if ((kind == cudaMemcpyHostToDevice) !=
          (type_of(to) == cudaMemoryTypeDevice && type_of(from) != cudaMemoryTypeDevice) ||
      (kind == cudaMemcpyDeviceToHost) !=
          (type_of(from) == cudaMemoryTypeDevice && type_of(to) != cudaMemoryTypeDevice))
    stand_in::report_misuse("a copy is not of the kind that it says");
  of(stream).push([=] { std::memcpy(to, from, count); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t count, cudaMemcpyKind kind) {
  const cudaError_t result = cudaMemcpyAsync(to, from, count, kind, nullptr);
  if (result == cudaSuccess) default_stream().wait();
  return result;
}
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t count, cudaStream_t stream) {
  if (const cudaError_t fate = fate_of(stream); fate != cudaSuccess) return fate;
  of(stream).push([=] { std::memset(pointer, value, count); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int) {
  if (const cudaError_t fate = fate_of(current_device); fate != cudaSuccess) return fate;
  use_device();
  *stream = new CUstream_st;
  (*stream)->device = current_device;
  ++runtime().streams;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  --runtime().streams;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t fate = fate_of(stream); fate != cudaSuccess) return fate;
  unsafe_in_capture("cudaStreamQuery");
  return not_ready_unless(of(stream).idle());
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t fate = fate_of(stream); fate != cudaSuccess) return fate;
  of(stream).wait();
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  if (const cudaError_t fate = fate_of(stream); fate != cudaSuccess) return fate;
  const auto state = event->state;
  std::unique_lock lock(state->mutex);
  const unsigned number = state->recorded;
  lock.unlock();
  of(stream).push([state, number] {
    std::unique_lock inner(state->mutex);
    state->wake.wait(inner, [&] { return state->reached >= number; });
  });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  if (const cudaError_t fate = fate_of(current_device); fate != cudaSuccess) return fate;
  *event = new CUevent_st;
  (*event)->device = current_device;
  ++runtime().events;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  --runtime().events;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t fate = fate_of(stream); fate != cudaSuccess) return fate;
  {
    const std::lock_guard guard(runtime().mutex);
    if (runtime().capturing.contains(stream)) runtime().misuse.emplace_back("an event becomes part of a capture");
  }
  const auto state = event->state;
  std::unique_lock lock(state->mutex);
  const unsigned number = ++state->recorded;
  lock.unlock();
  of(stream).push([state, number] {
    const std::lock_guard guard(state->mutex);
    if (state->reached < number) state->reached = number;
    state->wake.notify_all();
  });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t fate = fate_of(event->device); fate != cudaSuccess) return fate;
  unsafe_in_capture("cudaEventQuery");
  const std::lock_guard guard(event->state->mutex);
  return not_ready_unless(event->state->reached >= event->state->recorded);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (const cudaError_t fate = fate_of(stream); fate != cudaSuccess) return fate;
  of(stream).push([=] { function(data); });
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard guard(runtime().mutex);
  *status = runtime().capturing.contains(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, capture_mode);
  return cudaSuccess;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  const std::lock_guard guard(runtime().mutex);
  *flags = 0;
  *active = runtime().contexts.contains(device) ? 1 : 0;
  return CUDA_SUCCESS;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int, unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  const std::string name = symbol;
  *function = name == "cuDeviceGet"                  ? reinterpret_cast<void*>(&cuDeviceGet)
              : name == "cuDevicePrimaryCtxGetState" ? reinterpret_cast<void*>(&cuDevicePrimaryCtxGetState)
                                                     : nullptr;
  *status = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

}  // extern "C"
