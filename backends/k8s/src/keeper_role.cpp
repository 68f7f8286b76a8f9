// Registers the keeper as a role of the program.
#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>
#include <hypertune/k8s/pod_keeper.hpp>
#include <hypertune/remote/program_role.hpp>

#include <sys/stat.h>

#include <cstdlib>
#include <system_error>

namespace hypertune::inline v0::k8s {
namespace {

std::string variable(std::string_view name, std::string_view otherwise = {}) {
  const char* text = std::getenv(std::string(name).c_str());  // NOLINT(concurrency-mt-unsafe): there is one thread
  return text == nullptr ? std::string(otherwise) : std::string(text);
}

// The path of this program, if the file still exists under it, so that ps shows a meaningful name for the agent.
std::string own_program() {
  constexpr const char* self = "/proc/self/exe";
  std::error_code error;
  const auto path = std::filesystem::read_symlink(self, error);
  struct stat by_name{}, running{};
  const bool same = !error && ::stat(path.c_str(), &by_name) == 0 && ::stat(self, &running) == 0 &&
                    by_name.st_ino == running.st_ino && by_name.st_dev == running.st_dev;
  return same ? path.string() : self;
}

int run_keeper(const std::string& limits, std::vector<std::string> command) {
  auto options = KeeperOptions::from_environment(limits, command);
  ::unsetenv(std::string(token_variable).c_str());  // no child process gets it
  return keep_pod(std::move(options));
}

}  // namespace

KeeperOptions KeeperOptions::from_environment(const std::string& limits, const std::vector<std::string>& command) {
  KeeperOptions options;
  options.agents = variable(agents_variable, default_agents_folder);
  options.driver = variable(driver_variable, default_driver_file);
  options.worker = variable(name_variable);
  if (const auto text = variable(orphan_variable); !text.empty()) {
    char* end = nullptr;
    options.orphan_timeout = std::strtod(text.c_str(), &end);
    if (*end != '\0' || !(options.orphan_timeout > 0 && options.orphan_timeout < 1e7))
      fail(Errc::usage, "{} is '{}', but must be a number of seconds above 0", orphan_variable, text);
  }
  if (auto token = variable(token_variable); !token.empty()) try {
      options.token = Secret(std::move(token));
    } catch (const Error& e) { fail(Errc::usage, "{}: {}", token_variable, e.what()); }
  options.agent = {own_program()};
  if (!command.empty()) options.agent.insert(options.agent.end(), command.begin() + 1, command.end());
  options.agent.insert(options.agent.end(), {"--hypertune-agent", limits});
  return options;
}

}  // namespace hypertune::inline v0::k8s

// Programs that link this library name this symbol to the linker (see HypertuneTargets.cmake). Otherwise the linker
// would drop this file from a program that uses nothing else here.
extern "C" {
extern const bool hypertune_k8s_keeper_role;
const bool hypertune_k8s_keeper_role = hypertune::remote::add_program_role(
    {.argument = std::string(hypertune::k8s::keeper_argument), .run = hypertune::k8s::run_keeper});
}
