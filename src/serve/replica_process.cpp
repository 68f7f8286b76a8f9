#include "replica_process.hpp"

#include "inference_codec.hpp"

#include <hypertune/detail/parse_number.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/socket_pair.hpp>
#include <hypertune/process/subprocess.hpp>
#include <hypertune/record/detail/json_text.hpp>
#include <hypertune/trial/detail/value_codec.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::serving {

using hypertune::detail::Descriptor;

namespace {

// --- in a predictor's process

bool read_whole(int socket, char* to, std::size_t size) {
  while (size > 0) {
    const auto n = hypertune::detail::read_some(socket, to, size);
    if (n <= 0) return false;
    to += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

struct Frame {
  std::string bytes;
  std::size_t json = 0;
};

std::optional<Frame> read_frame(int socket) {
  FrameHead head;
  if (!read_whole(socket, reinterpret_cast<char*>(&head), sizeof head)) return std::nullopt;
  Frame frame{std::string(head.size, '\0'), head.json};
  if (!read_whole(socket, frame.bytes.data(), frame.bytes.size())) return std::nullopt;
  return frame;
}

bool write_frame(int socket, const Encoded& message) {
  const FrameHead head{message.bytes.size(), message.json};
  std::string whole(sizeof head, '\0');
  std::memcpy(whole.data(), &head, sizeof head);
  whole += message.bytes;
  return hypertune::detail::write_all(socket, whole) == 0;
}

// What is wrong with the request is the client's fault, all else the model's.
Encoded error_message(const std::exception_ptr& thrown) {
  int status = 500;
  std::string why;
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    why = error.what();
    if (error.code() == Errc::input || error.code() == Errc::usage) status = 400;
  } catch (const std::logic_error& error) {
    why = error.what();
    status = 400;
  } catch (const std::exception& error) { why = error.what(); } catch (...) {
    why = "an exception that is no std::exception";
  }
  Encoded out{R"({"error":)", 0};
  hypertune::detail::append_json(out.bytes, std::string_view(why));
  out.bytes += fmt::format(R"(,"status":{}}})", status);
  out.json = out.bytes.size();
  return out;
}

struct Load {
  Slot slot;
  CheckpointInfo info;
  std::string folder;
  Params params;
};

std::string encode(const Load& load) {
  std::string bytes;
  hypertune::detail::ValueWriter out(bytes);
  out.put(load.slot.cpus);
  out.put(load.slot.gpus);
  out.put(load.slot.resources.cpus);
  out.put(load.info);
  out.put(std::string_view(load.folder));
  out.put(load.params);
  return bytes;
}

Load decode_load(std::string_view bytes) {
  hypertune::detail::ValueReader in(bytes);
  Load load;
  load.slot.cpus = in.small_numbers();
  load.slot.gpus = in.small_numbers();
  load.slot.resources.cpus = in.real();
  load.info = in.checkpoint();
  load.folder = in.text();
  load.params = in.params();
  return load;
}

int serve_predictor(int socket, const detail::MakePredictor& make, const local::SlotBinding& binding) {
  const auto first = read_frame(socket);
  if (!first) return 1;
  detail::AnyPredictor predictor;
  try {
    const Load load = decode_load(first->bytes);
    binding(load.slot);
    predictor = make({Checkpoint(load.info, load.folder), load.params});
    Encoded metadata{"{" + encode_signature(predictor.signature) + "}", 0};
    metadata.json = metadata.bytes.size();
    if (!write_frame(socket, metadata)) return 1;
  } catch (...) {
    write_frame(socket, error_message(std::current_exception()));
    return 1;
  }
  while (const auto frame = read_frame(socket)) {
    Encoded answer;
    try {
      InferenceRequest request = decode_request(frame->bytes, frame->json);
      InferenceAnswer outputs;
      outputs.outputs = predictor.predict(std::move(request.inputs));
      for (const auto& output : outputs.outputs)
        if (output.datatype != Datatype::bytes && output.data.size() != output.count() * size_of(output.datatype))
          fail(Errc::input, "the model's output '{}' has {} bytes, which its shape does not have", output.name,
               output.data.size());
      request.outputs.reset();
      request.binary = true;
      answer = encode_answer(outputs, request);
    } catch (...) { answer = error_message(std::current_exception()); }
    if (!write_frame(socket, answer)) return 1;
  }
  return 0;
}

}  // namespace

// --- in the server

namespace {

// Nobody can read it, as after the end of the ssh by which the server was started: a program that
// writes there gets SIGPIPE.
bool standard_error_is_gone() {
  pollfd error{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&error, 1, 0) > 0 && (error.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

// A process that is forked while there are clients must not keep their connections open.
void close_sockets(int except) {
  std::vector<int> sockets;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    struct stat status{};
    const int fd = hypertune::detail::parse_number<int>(entry.path().filename().string()).value_or(-1);
    if (fd > 2 && fd != except && ::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode)) sockets.push_back(fd);
  }
  for (const int fd : sockets) ::close(fd);
}

}  // namespace

ReplicaStarter::ReplicaStarter(const detail::ServedProgram& program, const ReplicaOptions& options)
    : program_(program), options_(options), cores_(local::usable_cores()) {
  if (options.gpus > 0) {
    gpus_ = local::usable_gpus();
    if (gpus_.empty())
      fail(Errc::resources, "replicas are to have {} GPUs each, and this machine has none", options.gpus);
  }
  if (!program_.make) return;
  main_ = [make = program_.make, binding = local::SlotBinding(cores_, gpus_, options.cpus > 0)](int socket) {
    return serve_predictor(socket, make, binding);
  };
  guardian_ = std::make_unique<local::detail::Guardian>(main_);
}

Slot ReplicaStarter::slot_of(int number) const {
  Slot slot;
  slot.resources.cpus = options_.cpus > 0 ? options_.cpus : 1;
  const auto spread = [number](double each, std::size_t all, std::vector<int>& chosen) {
    const auto count = static_cast<int>(std::ceil(each));
    for (int i = 0; i < count && all > 0; ++i) chosen.push_back((number * count + i) % static_cast<int>(all));
  };
  if (options_.cpus > 0) spread(options_.cpus, cores_.size(), slot.cpus);
  spread(options_.gpus, gpus_.size(), slot.gpus);
  return slot;
}

bool ReplicaStarter::gone() {
  bool lost = false;
  while (guardian_ && !lost && guardian_->reply(lost)) {}
  return lost;
}

ReplicaProcess ReplicaStarter::start(const ModelFiles& model, int number) {
  const Slot slot = slot_of(number);
  return program_.make ? start_predictor(model, slot) : start_command(model, slot);
}

ReplicaProcess ReplicaStarter::start_command(const ModelFiles& model, const Slot& slot) const {
  process::SpawnOptions spawn{.in = process::Stream::pipe,
                              .out = process::Stream::pipe,
                              .err = standard_error_is_gone() ? process::Stream::null : process::Stream::inherited,
                              .keeper = process::Keeper::all};
  if (options_.cpus > 0 || options_.gpus > 0)
    for (const auto& [name, value] : local::SlotBinding(cores_, gpus_, options_.cpus > 0).environment(slot))
      spawn.environment[name] = value;
  if (!slot.cpus.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : slot.cpus) CPU_SET(cores_[static_cast<std::size_t>(core)], &set);
    spawn.prepare = [set] { return ::sched_setaffinity(0, sizeof set, &set) == 0 ? 0 : errno; };
  }
  std::string params;
  hypertune::detail::append_json_object(params, model.params);
  spawn.environment["HYPERTUNE_RESTORE"] = std::filesystem::absolute(model.folder).string();
  spawn.environment["HYPERTUNE_PARAMS"] = params;
  spawn.environment["HYPERTUNE_TRIAL"] = std::to_string(model.info.trial);
  spawn.environment["HYPERTUNE_STEP"] = std::to_string(model.info.steps);
  auto child = std::make_shared<process::Subprocess>(program_.command, spawn);
  ReplicaProcess process{std::move(child->in), std::move(child->out),
                         Descriptor(::fcntl(child->exit_event(), F_DUPFD_CLOEXEC, 3))};
  process.end = [child] {
    // Its output ends a moment before it does.
    ::kill(child->pid(), SIGCONT);  // its keeper may be stopped, and would never say that it has ended
    const bool ended = child->ready(0.05).exited;
    child->end();
    const int status = child->status().value_or(0);
    if (!ended) return std::string("it has closed its output");
    return WIFEXITED(status) ? fmt::format("it ended with exit code {}", WEXITSTATUS(status))
                             : fmt::format("it was ended by signal {}", WTERMSIG(status));
  };
  return process;
}

ReplicaProcess ReplicaStarter::start_predictor(const ModelFiles& model, const Slot& slot) {
  auto [ours, theirs] = hypertune::detail::make_socket_pair();
  const auto id = ++next_id_;
  guardian_->wake();
  if (!guardian_->spawn(id, theirs.get())) {
    hypertune::detail::say("hypertune: the process that starts replicas was killed: another one is started");
    guardian_ = std::make_unique<local::detail::Guardian>(main_, std::function<void()>(), close_sockets);
    if (!guardian_->spawn(id, theirs.get())) fail(Errc::io, "cannot start a replica");
  }
  gone();  // reads what it says of those that ended before
  const std::string load = encode({slot, model.info, std::filesystem::absolute(model.folder).string(), model.params});
  if (!write_frame(ours.get(), {load, load.size()})) fail(Errc::io, "cannot reach a replica that was just started");
  ReplicaProcess process;
  process.to = Descriptor(::fcntl(ours.get(), F_DUPFD_CLOEXEC, 3));
  process.from = std::move(ours);
  process.framed = true;
  process.end = [this, id] {
    guardian_->wake();
    guardian_->kill(id);
    return std::string("its process has ended");
  };
  return process;
}

}  // namespace hypertune::inline v0::serving
