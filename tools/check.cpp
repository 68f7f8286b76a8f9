#include "check.hpp"

#include "check_warnings.hpp"
#include "commands.hpp"
#include "dry_run.hpp"
#include "executors.hpp"
#include "forecast.hpp"
#include "local_trials.hpp"
#include "remote_trials.hpp"
#include "shell_words.hpp"
#include "sweep_file.hpp"
#include "terminal_text.hpp"
#include "trackers.hpp"

#include <hypertune/cluster/config.hpp>
#include <hypertune/cluster/providers.hpp>
#include <hypertune/config/algorithms.hpp>
#include <hypertune/config/pod_capacity.hpp>
#include <hypertune/config/sweep.hpp>
#include <hypertune/detail/plural.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/units.hpp>
#include <hypertune/execute/detail/placement.hpp>
#include <hypertune/execute/threads.hpp>
#include <hypertune/files/folder_walk.hpp>
#include <hypertune/files/temporary_folder.hpp>
#include <hypertune/local/slot_binding.hpp>
#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/search/adaptors.hpp>
#include <hypertune/tune/detail/experiment.hpp>
#include <hypertune/tune/detail/experiment_directory.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

namespace fs = std::filesystem;

namespace {

void print_row(std::string_view what, std::string_view text) {
  constexpr std::size_t indent = 13;
  fmt::print("{}\n", detail::terminal::wrapped(fmt::format("  {:<11}{}", what, text), terminal_width(), indent));
}

std::string plural(std::int64_t n, std::string_view what) { return fmt::format("{} {}{}", n, what, detail::plural(n)); }

// A searcher or scheduler with all of its options: their values in the file, or the defaults.
std::string algorithm_text(const std::optional<Node>& node, const std::vector<AlgorithmInfo>& known,
                           const std::string& name) {
  const std::string type = !node ? name : node->is_map() ? (*node)["type"].as<std::string>() : node->as<std::string>();
  std::string rest;
  for (const auto& info : known) {
    if (info.type != type) continue;
    for (const auto& option : info.options) {
      const auto given = node && node->is_map() ? node->find(option.name) : std::nullopt;
      const std::string value = given && given->is_scalar() ? given->as<std::string>() : given ? "…" : option.fallback;
      if (!value.empty() && (given || value != "0"))  // a default of 0 is of no effect
        rest += fmt::format("{}{} {}", rest.empty() ? ": " : ", ", option.name, value);
    }
  }
  return type + rest;
}

std::string space_size(const Sweep& sweep) {
  const auto& space = sweep.space;
  std::size_t continuous = 0;
  for (std::size_t d = 0; d < space.size(); ++d) continuous += space.domain(d).options == 0 ? 1U : 0U;
  std::string text = plural(static_cast<std::int64_t>(space.size()), "parameter");
  if (const auto points = space.cardinality())
    text += fmt::format(", {} configuration{}", *points, *points == 1 ? "" : "s");
  else if (continuous > 0)
    text += fmt::format(", {} continuous: no end of configurations", continuous);
  else
    text += ", as many configurations as their conditions leave";
  if (const auto grid = space.grid_size(); grid > 1) text += fmt::format("; a grid of {} combinations", grid);
  return text;
}

// The most pods over which the workers of one trial may be spread.
std::vector<Host> pods_for(const KubernetesOptions& options, const Workers& workers) {
  const auto each = capacity_of(options);
  std::vector<Host> pods;
  for (int i = 1; i <= std::min(options.pool.max, workers.min); ++i)
    pods.push_back({.name = fmt::format("worker-{}", i), .total = each, .slots = options.reuse ? 0 : 1});
  return pods;
}

// Throws an Error if the workers of a trial must be on several hosts and no network is configured between them.
void require_network(const Sweep& sweep) {
  const auto& workers = sweep.options.workers;
  const auto& group = sweep.options.group;
  if (group.required && group.network.empty() && workers.min > 1 && workers.strategy == Strategy::strict_spread)
    fail(
        Errc::usage,
        "no trial can ever run: 'workers.placement' is strict_spread, and no network is named by which the hosts reach "
        "each other: name it, as in `group: {{network: 10.1.0.0/16}}`");
}

// Throws an Error if no trial can ever run on this machine, or in pods.
void require_room(const Sweep& sweep) {
  require_network(sweep);
  if (sweep.executor.kubernetes) {
    ExecutorFacts facts;
    facts.hosts = pods_for(*sweep.executor.kubernetes, sweep.options.workers);
    facts.name = sweep.executor.type;
    facts.gangs = true;
    Experiment::require_possible(sweep.options, facts);
  }
  if (sweep.executor.type != "local") return;
  const AnyExecutor executor = executor_of(sweep);
  ExecutorFacts facts;
  facts.hosts = executor.hosts();
  facts.name = executor.name();
  facts.gangs = executor.gangs();
  Experiment::require_possible(sweep.options, facts);
}

// How many trials with these resources fit at the same time; 0: not even one.
int room_for(const Sweep& sweep, const std::vector<Host>& hosts) {
  Placement placement(hosts, sweep.options.group);
  const int bound = sweep.options.concurrency > 0 ? sweep.options.concurrency : 4096;
  int trials = 0;
  const int workers = sweep.options.workers.min;
  for (int placed = 0; trials < bound && placement.place(sweep.options.resources);)
    if (++placed % workers == 0) ++trials;
  return trials;
}

struct Here {
  int parallel = 0;  // trials at the same time on this machine; 0: they run elsewhere
  int cores = 0;
};

// The number of workers of each trial, if there are several.
void print_workers(const Sweep& sweep, const std::vector<Host>& hosts) {
  const Workers& workers = sweep.options.workers;
  if (!workers.several()) return;
  std::string text =
      workers.elastic() ? fmt::format("{} to {}", workers.min, workers.max) : fmt::to_string(workers.min);
  text += " for each trial";
  if (workers.elastic() && !hosts.empty()) {
    Placement placement(hosts, sweep.options.group);
    int most = 0;
    while (most < workers.max && placement.place(sweep.options.resources)) ++most;
    if (most < workers.max) text += fmt::format(": this machine has room for {}", most);
  }
  print_row("workers", text);
}

// Where trials run, and how many at the same time.
Here print_executor(const Sweep& sweep) {
  const ExecutorOptions& executor = sweep.executor;
  Here here;
  if (executor.type == "local") {
    here.cores = static_cast<int>(local::usable_cores().size());
    here.parallel = room_for(sweep, executor_of(sweep).hosts());
    print_row("runs", fmt::format("{} at once on this machine ({}, {}), in {}", plural(here.parallel, "trial"),
                                  plural(here.cores, "core"),
                                  plural(static_cast<std::int64_t>(local::usable_gpus().size()), "GPU"),
                                  executor.isolation == "thread" ? "threads" : "processes"));
    print_workers(sweep, executor_of(sweep).hosts());
    return here;
  }
  std::string where = where_trials_run(sweep);
  if (sweep.options.concurrency > 0) where += fmt::format(", {} at once at most", sweep.options.concurrency);
  print_row("runs", where + " (nobody was asked)");
  print_workers(sweep, {});
  return here;
}

// The files that are copied to hosts. Throws an Error if one does not exist.
std::vector<FileMount> mounts_to(const Sweep& sweep) {
  const auto& executor = sweep.executor;
  if (!executor.ssh && !executor.kubernetes) return {};
  std::vector<fs::path> programs;
  return mounts_of(sweep, executor.ssh ? executor.ssh->file_mounts : executor.kubernetes->file_mounts, programs);
}

void print_mounts(const std::vector<FileMount>& mounts) {
  for (const auto& mount : mounts) {
    std::error_code ignored;
    double bytes = 0;
    std::int64_t files = 0;
    if (fs::is_directory(mount.local, ignored)) {
      for (const auto& entry : walk_folder(mount.local, {.exclude = mount.exclude, .filter = {}}))
        if (!entry.is_folder()) {
          bytes += static_cast<double>(entry.info.st_size);
          ++files;
        }
    } else {
      bytes = static_cast<double>(fs::file_size(mount.local, ignored));
      files = 1;
    }
    print_row("brings", fmt::format("{} to {}: {}, {}", mount.local.string(), mount.remote, plural(files, "file"),
                                    detail::size_text(bytes)));
  }
}

// What there is already of the path of a folder that is to be made.
fs::path existing_part(const fs::path& folder) {
  std::error_code ignored;
  fs::path part = fs::absolute(folder, ignored);
  while (!fs::exists(part, ignored) && part.has_relative_path()) part = part.parent_path();
  return part;
}

// Throws an Error if the folder of the results cannot be made, here or elsewhere.
void require_output(const Sweep& sweep) {
  const auto folder = experiment_directory(sweep.options);
  const auto part = existing_part(folder);
  std::error_code ignored;
  if (!fs::is_directory(part, ignored))
    fail(Errc::usage, "the folder '{}' for the results cannot be made: '{}' is a file (set 'output' to another folder)",
         folder.string(), part.string());
}

std::string state_of_output(const fs::path& folder) {
  if (has_journal(folder)) return "there is an experiment already, which --resume goes on with";
  const auto part = existing_part(folder);
  if (::access(part.c_str(), W_OK | X_OK) != 0)
    return fmt::format("cannot be made here: there is no permission to write in '{}'", part.string());
  std::error_code ignored;
  const bool used = fs::exists(folder, ignored) && !fs::is_empty(folder, ignored);
  return used ? "no experiment, but it has other files" : "new";
}

void print_output(const Sweep& sweep) {
  Options options = sweep.options;
  const auto fresh = experiment_directory(options);
  print_row("output", fmt::format("{}: {}", fresh.string(), state_of_output(fresh)));
  options.resume = true;
  if (const auto last = experiment_directory(options); last != fresh && has_journal(last))
    print_row("", fmt::format("--resume would go on with {}", last.string()));
}

// What trials will run: the first one, and others with other arguments.
void print_commands(const Sweep& sweep) {
  constexpr std::size_t most = 3, max_length = 400;
  std::vector<std::size_t> shapes;  // how many words each has
  for (const auto& params : some_configurations(sweep, 16)) {
    const auto words = arguments_of(sweep, params);
    if (shapes.size() == most || std::find(shapes.begin(), shapes.end(), words.size()) != shapes.end()) continue;
    shapes.push_back(words.size());
    auto text = typed(words);
    std::replace(text.begin(), text.end(), '\n', ' ');
    print_row(shapes.size() == 1 ? "command" : "  or",
              detail::terminal::elide(detail::terminal::printable(text), max_length));
  }
  for (const auto& file : sweep.trial->files)
    print_row("makes", fmt::format("DIRECTORY/{} from {}, where DIRECTORY is the trial's folder", file.path,
                                   file.from.empty() ? "the text in this file" : file.from));
}

void print_forecast(const Sweep& sweep, const Node& root, int parallel) {
  const auto stop = root.find("stop");
  int steps = 0;
  for (const char* name : {"steps", "training_iteration"})
    if (const auto given = stop ? stop->find(name) : std::nullopt) steps = given->as<int>();
  const bool one = makes_one_report(sweep);
  if (one) steps = 1;
  const auto found = forecast(sweep, parallel > 0 ? parallel : std::max(sweep.options.concurrency, 8), steps);
  if (!found) {
    const auto each = trials_per_sample(sweep.space, sweep.options.search);
    const int most = sweep.options.schedule.max_steps();
    const bool grid = has_grid(sweep.space) && !sweep.options.search.finite();  // each combination runs at least once
    const std::int64_t samples = std::max<std::int64_t>(*sweep.options.samples, grid ? 1 : 0);
    std::int64_t trials = samples * each;
    if (const auto end = trials_until_end(sweep)) trials = std::min(trials, *end);
    const auto text = samples > 0
                          ? fmt::format("{}; ", trials)
                          : std::string("as many as there are until 'stop' holds or the searcher comes to its end; ");
    return print_row("trials", text + (one        ? "each makes one report, when its command has ended"
                                       : most > 0 ? fmt::format("each trains {} at most", plural(most, "step"))
                                                  : "each trains until its command ends"));
  }
  if (one)
    return print_row("trials", fmt::format("{}; each makes one report, when its command has ended", found->trials));
  print_row("trials", fmt::format("{}; {} steps in all{}", found->trials, found->steps,
                                  found->scaled ? ", about (a part was played)" : ""));
  if (found->reached.size() < 2) return;
  constexpr std::size_t most = 8;
  std::string line;
  const std::size_t n = found->reached.size(), every = (n + most - 1) / most;
  for (std::size_t i = 0; i < n; ++i)
    if (i % every == 0 || i + 1 == n)
      line += fmt::format("{}{} to {}", line.empty() ? "" : ", ", found->reached[i].second,
                          plural(found->reached[i].first, "step"));
  print_row("", "expected to train: " + line);
}

// What the searcher takes from earlier experiments, as text. Throws an Error if it cannot use one that is configured.
std::string learnt_before(const Sweep& sweep, const Node& root) {
  const auto search = root.find("search");
  if (!search || !search->is_map() || !search->find("warm_start")) return {};
  std::string learnt;
  AnySearcher searcher = sweep.options.search;
  searcher.prepare(sweep.space, {.objectives = objectives_of(sweep.options).size(),
                                 .constraints = sweep.options.constraints.size(),
                                 .samples = sweep.options.samples,
                                 .seed = *sweep.options.seed,
                                 .note = [&](const std::string& text) { learnt = text; }});
  return learnt;
}

std::string first_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

void print_sweep(const Sweep& sweep, const Node& root, const std::vector<FileMount>& mounts,
                 const std::string& learnt) {
  print_row("space", space_size(sweep));
  std::string tuned;
  for (const auto& [metric, mode] : objectives_of(sweep.options))
    tuned += fmt::format("{}{} ({})", tuned.empty() ? "" : ", ", metric, mode == Mode::minimize ? "min" : "max");
  print_row("tunes", tuned);
  const auto search = root.find("search"), schedule = root.find("schedule");
  print_row("search", algorithm_text(search, known_searchers(), sweep.options.search.name()));
  if (!learnt.empty()) print_row("", learnt);
  const bool own = !schedule && sweep.options.schedule.name() != "fifo";
  print_row("schedule", own ? sweep.options.schedule.name() + ", which belongs to the searcher"
                            : algorithm_text(schedule, known_schedulers(), sweep.options.schedule.name()));
  Here here;
  if (sweep.trial) here = print_executor(sweep);
  if (sweep.trial) print_commands(sweep);
  print_forecast(sweep, root, here.parallel);
  print_mounts(mounts);
  print_output(sweep);
  auto warnings = warnings_about(sweep, here.parallel, here.cores);
  about_loggers(root, warnings);
  for (const auto& warning : warnings) print_row("warning", warning);
}

int refuse(const std::string& file, const std::vector<std::string>& errors) {
  for (const auto& error : errors) detail::say("hypertune: " + detail::terminal::printable(first_line(error)));
  detail::say(fmt::format("hypertune: {} in {}: it would not run",
                          plural(static_cast<std::int64_t>(errors.size()), "error"), file));
  return exit_usage;
}

// What the provider would refuse when machines are made.
std::vector<std::string> refused_by_provider(const std::string& file, const cluster::ClusterConfig& config) {
  std::vector<std::string> errors;
  if (config.provider.type != "aws") return errors;  // of the others, a file says all that can be known here
  try {
    const detail::TemporaryFolder state;  // checking a file leaves nothing of a cluster
    auto provider = cluster::make_provider(config, state.path());
    for (const auto& type : config.types) {
      if (&type != &config.head() && type.max_workers <= 0) continue;
      try {
        provider.check(type);
      } catch (const cluster::ProviderError& error) {
        errors.push_back(fmt::format("{}:{}: {}", file, type.config_line > 0 ? type.config_line : type.line,
                                     first_line(error.what())));
      }
    }
  } catch (const Error& error) { errors.push_back(fmt::format("{}: {}", file, error.what())); }
  return errors;
}

int check_cluster(const std::string& file, const Node& root) {
  Complaints found;
  std::optional<cluster::ClusterConfig> config;
  std::error_code ignored;
  try {
    config = cluster::cluster_from_yaml(root, fs::absolute(file, ignored).parent_path());
  } catch (const Error& error) { found.add(error); }
  add_complaints_about(found, root, cluster::cluster_shape());
  auto errors = found.lines();
  if (errors.empty()) errors = refused_by_provider(file, *config);
  if (!errors.empty()) return refuse(file, errors);
  fmt::print("{} is sound: a cluster\n", file);
  print_row("cluster", fmt::format("{}, machines of '{}'", config->name, config->provider.type));
  print_row("workers", fmt::format("{} to {}", config->min_workers, config->max_workers));
  for (const auto& type : config->types)
    print_row("type", fmt::format("{}{}: {} to {}{}", type.name, &type == &config->head() ? " (the head)" : "",
                                  type.min_workers, type.max_workers,
                                  type.price > 0 ? fmt::format(", {} {} an hour", type.price, config->currency) : ""));
  const bool alone =
      std::none_of(config->types.begin(), config->types.end(), [](const auto& type) { return type.max_workers > 0; });
  if (alone && config->max_workers > 0)
    print_row("warning", fmt::format("there can be no worker: without 'max_workers' none is of the head's type, '{}'",
                                     config->head().name));
  for (const auto& mount : config->file_mounts)
    if (!fs::exists(mount.local, ignored))
      print_row("warning", fmt::format("there is no '{}' to bring to '{}'", mount.local.string(), mount.remote));
  const auto& key = config->auth.ssh_private_key;
  if (!key.empty() && !fs::exists(key, ignored))
    print_row("warning", fmt::format("there is no key '{}'", key.string()));
  for (const auto& warning : config->warnings) print_row("warning", first_line(warning));
  return exit_done;
}

constexpr const char* only_one = "workers of the trial that is tried";

int run_one(const Sweep& sweep, const std::shared_ptr<const Program>& program, const std::string& timeout) {
  const auto seconds = parse_duration(timeout);
  if (!seconds || !(*seconds > 0)) fail(Errc::usage, "--timeout takes a duration such as 90s, not '{}'", timeout);
  const Workers& workers = sweep.options.workers;
  Sweep here = sweep;
  // There is room for a trial of one worker, whatever it needs: it may be meant for another machine.
  const auto& needs = sweep.options.resources;
  AnyExecutor executor = threads({.cpus = std::max(1.0, needs.cpus), .gpus = needs.gpus, .custom = needs.custom});
  if (workers.several()) {
    if (here.executor.type != "local") here.executor = {};
    // A trial with one worker is a group too. The custom resource makes room for that worker, and for no other.
    if (workers.min == 1) here.executor.custom[only_one] = here.options.resources.custom[only_one] = 1;
    executor = executor_of(here);
    const Placement placement(executor.hosts());
    const Workers fewest{.min = workers.min, .max = workers.min, .strategy = workers.strategy};
    if (!placement.possible(here.options.resources, fewest)) {
      fmt::print("no trial was tried: this machine has no room for its workers\n");
      print_row("", placement.why_not(sweep.options.resources, fewest));
      return exit_done;
    }
    fmt::print("one trial of {}, of which nothing is kept:\n", plural(workers.min, "worker"));
  } else {
    fmt::print("one trial, of which nothing is kept:\n");
  }
  const auto say = [](std::string_view what, std::string_view text) {
    print_row(what, text);
    std::fflush(stdout);
  };
  const auto found = dry_run(here, program, std::move(executor), *seconds, say);
  for (const auto& wrong : found.wrong) detail::say("hypertune: " + detail::terminal::printable(first_line(wrong)));
  if (found.wrong.empty()) fmt::print("the trial reports what is tuned{}\n", found.checkpoint ? ", and saves" : "");
  return found.wrong.empty() ? exit_done : exit_failed;
}

}  // namespace

int check(const CheckArguments& arguments) {
  const Node root = load_with(arguments.file, arguments.set);
  if (root.is_map() && !root.has("space") && (root.has("provider") || root.has("cluster_name")))
    return check_cluster(arguments.file, root);
  const bool study = root.is_map() && !root.has("trial") && root.has("space");
  Complaints errors;
  add_complaints_about_sweep(errors, root, study);
  if (!errors.lines().empty()) return refuse(arguments.file, errors.lines());
  const Sweep sweep = sweep_from_yaml(root, study);
  std::shared_ptr<const Program> program;
  std::vector<FileMount> mounts;
  const auto attempt = [&](const auto& look) {
    try {
      look();
    } catch (const Error& error) {
      const std::string text = error.what();
      errors.add(text.starts_with(arguments.file) ? text : arguments.file + ": " + text);
    }
  };
  if (!study) {
    attempt([&] { program = program_of(sweep, program_is_here(sweep)); });
    attempt([&] { mounts = mounts_to(sweep); });
    attempt([&] { require_room(sweep); });
  }
  attempt([&] { require_output(sweep); });
  std::string learnt;
  attempt([&] { learnt = learnt_before(sweep, root); });
  attempt([&] {
    Sweep sent = sweep;
    add_trackers(sent);
  });
  attempt([&] {
    if (!study) require_bounded(sweep);
    Experiment::require_sound(sweep.space, sweep.options, study);
  });
  if (!errors.lines().empty()) return refuse(arguments.file, errors.lines());
  fmt::print("{} is sound{}\n", arguments.file, study ? ": a study (it has no 'trial'; hypertune study runs it)" : "");
  print_sweep(sweep, root, mounts, learnt);
  if (!arguments.run) return exit_done;
  if (study) fail(Errc::usage, "--run is for sweeps: a study's trials are run by its caller");
  std::fflush(stdout);
  return run_one(sweep, program, arguments.timeout);
}

}  // namespace hypertune::inline v0::command
