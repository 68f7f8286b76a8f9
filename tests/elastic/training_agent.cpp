// The agent of hosts on which the trainings of elastic_training.hpp run: training_agent DIRECTORY WORKERS. The program
// "MILLISECONDS SEED FOLDER SIGNAL SHARE": how long a batch takes, and who is killed when, see KilledAtRandom.
#include "elastic_training.hpp"

#include <hypertune/remote/agent.hpp>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

namespace ht = hypertune;

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  ht::remote::AgentOptions options;
  options.directory = argv[1];
  options.processes.pool = std::atoi(argv[2]);
  options.processes.pin = false;
  options.processes.stop_grace = 3600;  // who is late is not asked to leave
  return ht::remote::agent_main(
      [](const std::string& description) {
        std::istringstream words(description);
        int milliseconds = 0;
        ht::test::KilledAtRandom chaos;
        words >> milliseconds >> chaos.seed >> chaos.folder >> chaos.signal >> chaos.share;
        const auto training = [=](const ht::Params& params, ht::Context& context) {
          return ht::test::train_in_parts(params, context, [=](const auto& group, auto& trial, int epoch, int batch) {
            std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));  // it computes
            chaos(group, trial, epoch, batch);
          });
        };
        return ht::make_program<ht::Params>([](const ht::Point&) { return ht::Params(); }, training, "sum");
      },
      options);
}
