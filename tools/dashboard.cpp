// hypertune dashboard: the page of experiments, until Ctrl-C; also the page of a run.
#include "commands.hpp"

#ifdef HYPERTUNE_HAS_DASHBOARD

#include "cost.hpp"

#include <hypertune/detail/say.hpp>
#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/process/subprocess.hpp>
#include <hypertune/show/dashboard.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

std::string tunnel_line(std::uint16_t port) {
  const char* connection = std::getenv("SSH_CONNECTION");
  if (connection == nullptr) return {};
  // "client address, client port, server address, server port"
  std::string_view text = connection;
  std::array<std::string_view, 4> parts;
  for (auto& part : parts) part = detail::take_until(text, ' ');
  std::string host(parts[2]);
  for (const char c : host)
    if (std::string_view("0123456789abcdefABCDEF.:").find(c) == std::string_view::npos) host.clear();
  if (host.empty()) host = "THIS_HOST";
  const char* user = std::getenv("USER");
  const std::string who = user == nullptr ? host : detail::shell_quote(std::string(user) + "@" + host);
  const bool other_port =
      !parts[3].empty() && parts[3] != "22" && parts[3].find_first_not_of("0123456789") == std::string_view::npos;
  return fmt::format("from your machine: ssh -N -L {0}:127.0.0.1:{0} {1}{2}", port,
                     other_port ? fmt::format("-p {} ", parts[3]) : "", who);
}

int dashboard(const DashboardArguments& arguments) {
  DashboardServing serving;
  for (const auto& folder : arguments.folders) serving.folders.emplace_back(folder);
  serving.port = arguments.port;
  serving.listen = arguments.listen;
  serving.identity = arguments.identity;
  serving.token = arguments.token;
  serving.cost = [](const std::filesystem::path& folder) { return cost_brief(folder); };
  Dashboard dashboard(std::move(serving));
  const bool beyond = !dashboard.fingerprint().empty();
  fmt::print("{}\n", dashboard.link());
  if (beyond) {
    detail::say(
        fmt::format("hypertune: this link works once; the certificate's SHA-256 is {}", dashboard.fingerprint()));
  } else if (const auto line = tunnel_line(dashboard.port()); !line.empty()) {
    detail::say(line);
  }
  std::fflush(stdout);
  std::optional<process::Subprocess> browser;
  if (arguments.open) {
    try {
      browser.emplace(std::vector<std::string>{"xdg-open", dashboard.link()});
    } catch (const Error& error) {  // the server works without it
      detail::say(fmt::format("hypertune: no browser was opened: {}", error.what()));
    }
  }
  dashboard.wait_for_signal();
  return exit_done;
}

DashboardStart dashboard_of_run(std::uint16_t port) {
  DashboardServing serving;
  serving.port = port;
  serving.cost = [](const std::filesystem::path& folder) { return cost_brief(folder); };
  return [start = serve_dashboard(std::move(serving))](const std::filesystem::path& experiment) {
    auto page = start(experiment);
    if (const auto line = tunnel_line(std::static_pointer_cast<Dashboard>(page)->port()); !line.empty())
      detail::say(line);
    return page;
  };
}

}  // namespace hypertune::inline v0::command

#else

#include <hypertune/error.hpp>

namespace hypertune::inline v0::command {

namespace {

[[noreturn]] void lacks_dashboard() {
  fail(Errc::usage, "this hypertune was built without its dashboard: install gzip and build it again");
}

}  // namespace

int dashboard(const DashboardArguments&) { lacks_dashboard(); }
DashboardStart dashboard_of_run(std::uint16_t) { lacks_dashboard(); }

}  // namespace hypertune::inline v0::command

#endif
