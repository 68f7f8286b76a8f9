// Trials that log each step to a file, for the measuring script to kill them or their driver and to count.
// peer_faults threads|processes TRIALS AT_ONCE STEPS STEP_MS EVERY OUTPUT STEPS_LOG
// Run again on the same OUTPUT it resumes. A line of the log: [time, trial, step, pid, first step of the attempt].
#include "support.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <thread>

using namespace peers;

int main(int argc, char** argv) {
  return run(argc, argv, [](const std::vector<std::string>& a) {
    if (a.size() != 8) ht::fail(ht::Errc::usage, "peer_faults takes 8 arguments: see the head of faults.cpp");
    const int steps = number(a[3]), step_ms = number(a[4]);
    // One write() of a line in append mode is not torn, even when the writer is killed.
    const int log = ::open(a[7].c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (log < 0) ht::fail(ht::Errc::io, "cannot open '{}'", a[7]);
    const auto train = [=](Config config, ht::Context& context) -> ht::Training {
      int done = context.next_step();
      const int first = done;
      context.checkpoints([&done](ht::CheckpointWriter& out) { std::ofstream(out.file("step")) << done; },
                          [&done](const ht::Checkpoint& in) { std::ifstream(in.file("step")) >> done; });
      while (done < steps) {
        std::this_thread::sleep_for(std::chrono::milliseconds(step_ms));
        const auto line = fmt::format("[{:.6f}, {}, {}, {}, {}]\n", epoch(), context.trial(), done, ::getpid(), first);
        if (::write(log, line.data(), line.size()) < 0) ht::fail(ht::Errc::io, "cannot write the log of steps");
        ++done;
        co_yield ht::report("x", config.a * done);
      }
    };
    auto o = options(a[6], number(a[1]));
    o.executor = executor(a[0], number(a[2]));
    o.checkpoint.every = number(a[5]);
    o.max_retries = 3;
    o.resume = true;
    const auto results = ht::tune(space(), train, o);
    fmt::print(R"({{"trials": {}}})"
               "\n",
               results.size());
    return 0;
  });
}
