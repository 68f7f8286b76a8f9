// hypertune status CLUSTER.yaml: the machines of a cluster, what they cost, and what runs on them.
#include "cluster.hpp"
#include "cluster_support.hpp"
#include "commands.hpp"

#include <hypertune/cluster/job.hpp>
#include <hypertune/cluster/machine_link.hpp>
#include <hypertune/record/detail/json_writer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

namespace {

namespace hc = hypertune::cluster;

std::string since(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

// Columns fit their contents, because names of pods are long.
void print_machines(const hc::ClusterView& view, double now) {
  if (view.machines.empty()) return;
  using Row = std::array<std::string, 6>;
  std::vector<Row> rows{{"role", "id", "address", "type", "state", "since"}};
  for (const auto& status : view.machines) {
    const auto& machine = status.machine;
    const bool running = machine.state == hc::MachineState::running;
    rows.push_back({machine.head ? "head" : "worker", machine.id, machine.address.empty() ? "-" : machine.address,
                    machine.node_type + (machine.spot ? " (spot)" : ""),
                    running ? (status.ready ? "ready" : "not set up") : to_string(machine.state),
                    status.launched_at > 0 ? since(now - status.launched_at) : "-"});
  }
  std::array<std::size_t, 6> widths{};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const auto& row : rows) {
    std::string line = " ";
    for (std::size_t i = 0; i + 1 < row.size(); ++i) line += fmt::format(" {:<{}} ", row[i], widths[i]);
    fmt::print("{} {}\n", line, row.back());
  }
}

}  // namespace

std::vector<hc::JobStatus> unfetched_jobs(const hc::ClusterConfig& config, const hc::Machine& machine) {
  if (!machine.head || machine.state != hc::MachineState::running || machine.address.empty()) return {};
  const auto head = hc::connect_machine(config, machine, hc::cluster_state(config.name), 10);
  auto jobs = hc::all_jobs(head.shell, config);
  std::erase_if(jobs, [](const auto& job) { return job.state == hc::JobState::none; });
  return jobs;
}

int cluster_status(const std::string& file, const std::string& format, const std::string& name) {
  ClusterArguments arguments;
  arguments.file = file;
  arguments.name = name;
  const auto config = read_cluster(arguments);
  const auto view = hc::view_cluster(config, hc::provider_of(config));
  const double now = hc::wall_now();
  if (format == "json") {
    hypertune::detail::JsonWriter out;
    const auto decimals = [&](const char* name, double number) { out.key(name).raw(fmt::format("{:.6f}", number)); };
    out.begin_object().member("cluster", config.name).key("driver");
    view.driver.empty() ? out.value(nullptr) : out.value(view.driver);
    out.key("machines").begin_array();
    for (const auto& status : view.machines) {
      const auto& machine = status.machine;
      out.begin_object().member("id", machine.id).member("address", machine.address).member("type", machine.node_type);
      if (!machine.waiting_reason.empty()) out.member("waits", machine.waiting_reason);
      out.member("role", machine.head ? "head" : "worker").member("spot", machine.spot);
      out.member("state", to_string(machine.state)).member("ready", status.ready);
      out.key("seconds").raw(fmt::format("{:.0f}", status.launched_at > 0 ? now - status.launched_at : 0.0));
      out.end_object();
    }
    out.end_array().key("cost").begin_object();
    decimals("hours", view.cost.hours());
    decimals("total", view.cost.cost());
    decimals("saved", view.cost.saved());
    out.member("complete", view.cost.complete()).member("currency", view.cost.currency).key("lines").begin_array();
    for (const auto& line : view.cost.lines) {
      out.begin_object().member("type", line.node_type).member("spot", line.spot).member("machines", line.machines);
      out.member("running", line.running);
      decimals("hours", line.hours);
      out.member("price", line.price);
      decimals("cost", line.cost());
      decimals("saved", line.saved());
      out.end_object();
    }
    fmt::print("{}\n", out.end_array().end_object().end_object().take());
    return view.error.empty() ? exit_done : exit_failed;
  }
  fmt::print("cluster '{}' ({}): {} machine{}{}\n", config.name, config.provider.type, view.machines.size(),
             view.machines.size() == 1 ? "" : "s",
             view.driver.empty() ? "" : fmt::format("; worked on by {}", view.driver));
  if (!view.error.empty()) fmt::print("what the journal says, as {}\n", view.error);
  print_machines(view, now);
  for (const auto& status : view.machines)
    if (status.machine.state == hc::MachineState::pending && !status.machine.waiting_reason.empty())
      fmt::print("  {} {}\n", status.machine.id, status.machine.waiting_reason);
  for (const auto& line : view.cost.lines)
    fmt::print("  {}{}: {} machine{}, {:.2f} h{}{}\n", line.node_type, line.spot ? " (spot)" : "", line.machines,
               line.machines == 1 ? "" : "s", line.hours,
               line.price > 0 ? fmt::format(" at {:g} = {:.2f} {}", line.price, line.cost(), view.cost.currency) : "",
               line.saved() > 0 ? fmt::format(", {:.2f} saved", line.saved()) : "");
  if (!view.cost.lines.empty()) fmt::print("cost: {}\n", view.cost.summary());
  if (view.error.empty()) {
    try {
      for (const auto& status : view.machines)
        for (const auto& job : unfetched_jobs(config, status.machine))
          fmt::print("job {}{}: {}\n", job.id, job.name.empty() ? "" : fmt::format(" ({})", job.name),
                     job.state == hc::JobState::running ? "running"
                     : job.state == hc::JobState::died
                         ? "died with its machine; submit it again"
                         : fmt::format("ended with exit code {}; its results wait", job.code));
    } catch (const Error& error) { fmt::print("the head cannot be asked: {}\n", error.what()); }
  }
  return view.error.empty() ? exit_done : exit_failed;
}

}  // namespace hypertune::inline v0::command
