// SlurmOptions: the options of a worker on Slurm, in C++ and as `executor: {type: slurm, …}`. Plain data.
#pragma once

#include <hypertune/config/pool_size.hpp>
#include <hypertune/detail/old_name.hpp>
#include <hypertune/hosts/checkpoint_transfer.hpp>
#include <hypertune/option.hpp>
#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {
/// A duration that may be written in Slurm's notation, too.
struct SlurmTime {
  using form_tag = void;
  Bounds bounds;
};
}  // namespace detail

/// Meant for designated initialisers: `{.partition = "gpu", .time = 4 * 3600, .cpus = 4, .gres = "gpu:1"}`. A worker is
/// a job of one task that runs trials until no more of them wait.
struct SlurmOptions {
  static constexpr const char* type = "slurm";
  /// Where workers run.
  enum class Jobs : std::uint8_t {
    automatic,  ///< within the allocation that the driver runs in (salloc, sbatch); without one, as jobs
    own,        ///< each worker is a job of its own, wherever the driver runs
  };

  PoolSize pool = {};  ///< "1..8" in files; within an allocation one worker per node
  std::string partition = {};
  std::string account = {};
  std::string qos = {};
  Seconds time = 0;
  int cpus = 1;
  std::string gres = {};
  std::uint64_t memory = 0;
  Jobs jobs = Jobs::automatic;
  Seconds save_grace = 60;
  detail::OldName<Seconds> notice = {};  ///< now save_grace
  Seconds idle_timeout = 60;
  detail::OldName<Seconds> idle = {};  ///< now idle_timeout
  Seconds heartbeat_timeout = 10;
  detail::OldName<Seconds> silence = {};  ///< now heartbeat_timeout
  CheckpointTransfer transfer = {};
  std::filesystem::path workdir = {};
  std::vector<std::string> args = {};

  static void describe(auto& self, auto&& option) {
    using Unit = Bounds::Unit;
    option("pool", self.pool, "how many workers, as the queue of trials asks for them");
    option("partition", self.partition, "`sbatch --partition`: the partition that workers are jobs of");
    option("account", self.account, "`sbatch --account`");
    option("qos", self.qos, "`sbatch --qos`");
    option("time", self.time, detail::SlurmTime{at_least(60).at_most(365.0 * 86400).or_zero().in(Unit::seconds)},
           "`sbatch --time`: how long a worker may run. Its trials are saved before, and go on in the next one");
    option("cpus", self.cpus, between(1, 4096), "`sbatch --cpus-per-task`: the cores of a worker");
    option("gres", self.gres, "`sbatch --gres`: what else it has, such as `gpu:1`");
    option("memory", self.memory, at_least(0).in(Unit::bytes), "`sbatch --mem`: its memory");
    option("jobs", self.jobs, {"auto", "own"},
           "`auto`: where this runs in an allocation, workers are steps in it, one on each node; `own`: each is a job, "
           "also then");
    option("save_grace", self.save_grace, between(1, 65535).in(Unit::seconds),
           "`sbatch --signal`: how long before its time is over a worker begins to save");
    option("idle_timeout", self.idle_timeout, at_least(0).in(Unit::seconds),
           "how long a worker may be without a trial until it is ended");
    option("heartbeat_timeout", self.heartbeat_timeout, between(1, 3600).in(Unit::seconds),
           "a worker without a heartbeat for this long is lost");
    option("workdir", self.workdir,
           "`--chdir`: the folder in which trials run, as the nodes see it; empty: the one where this was called");
    option("args", self.args,
           "further arguments of `sbatch`, such as `--constraint=a100`; within an allocation, of `srun`");
    option("transfer", self.transfer, "how checkpoints are copied. `direct` needs `network` here");
  }
  /// Options by the names of earlier versions, under their new ones.
  void take_old_names() {
    notice.give_to(save_grace);
    idle.give_to(idle_timeout);
    silence.give_to(heartbeat_timeout);
  }
  /// Checks what a single option's bounds cannot.
  void check() const {
    const auto refuse = [](const char* name, const std::string& problem) { throw OptionError(type, name, problem); };
    check_pool(pool, type);
    const auto is_word = [](const std::string& text) {
      return text.front() != '-' && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
    };
    for (const auto& [name, text] : {std::pair("partition", &partition), std::pair("account", &account),
                                     std::pair("qos", &qos), std::pair("gres", &gres)})
      if (!text->empty() && !is_word(*text))
        refuse(name, detail::format("is '{}', which is not a valid Slurm name", *text));
    if (time > 0 && save_grace >= time)
      refuse("save_grace", detail::format("is {} s, but must be less than 'time', which is {} s", save_grace, time));
    check_options(transfer);
    if (transfer.direct && transfer.network.empty())
      throw OptionError("transfer", "direct",
                        "needs 'network' on Slurm: the addresses by which nodes reach each other");
    // With these options a worker would not be one task whose streams belong to the driver.
    constexpr std::string_view ours[] = {"-n",         "-N",           "-i",           "-o",         "-e",
                                         "-l",         "-J",           "-c",           "--ntasks",   "--nodes",
                                         "--input",    "--output",     "--error",      "--label",    "-u",
                                         "--pty",      "--signal",     "--chdir",      "--job-name", "--cpus-per-task",
                                         "-D",         "--multi-prog", "--unbuffered", "--overlap",  "--jobid",
                                         "-a",         "--array",      "--wrap",       "-W",         "--wait",
                                         "--parsable", "--requeue",    "--test-only"};
    for (const auto& arg : args) {
      const auto name = std::string_view(arg).substr(0, arg.find('='));
      if (arg.size() < 2 || arg.front() != '-' || arg.find('\n') != std::string::npos)
        refuse("args", detail::format(
                           "has '{}': write options of sbatch or srun as one word each, like --constraint=a100", arg));
      for (const auto own : ours)
        if (own.starts_with("--") ? name == own : name.starts_with(own) && !name.starts_with("--"))
          refuse("args", detail::format("has '{}', which hypertune sets itself", arg));
    }
  }
};

/// The number of GPUs in a value of `--gres`: "gpu:a100:2,shm" has 2.
inline int gpus_of_gres(std::string_view gres) {
  int gpus = 0;
  while (!gres.empty()) {
    const auto comma = std::min(gres.find(','), gres.size());
    auto one = gres.substr(0, comma);
    gres.remove_prefix(std::min(comma + 1, gres.size()));
    if (one.starts_with("gres/")) one.remove_prefix(5);
    one = one.substr(0, one.find('('));  // without the list of sockets
    if (one != "gpu" && !one.starts_with("gpu:") && !one.starts_with("gpu=")) continue;
    const auto last = one.find_last_of(":=");
    int count = 0;
    const auto digits = last == std::string_view::npos ? std::string_view() : one.substr(last + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    const bool number = !digits.empty() && error == std::errc() && end == digits.data() + digits.size();
    gpus += number && count >= 0 && count <= 1024 ? count : 1;
  }
  return gpus;
}

}  // namespace hypertune::inline v0
