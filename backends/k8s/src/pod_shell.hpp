// Runs scripts in a container, by exec.
#pragma once

#include <hypertune/k8s/client.hpp>
#include <hypertune/remote/host_error.hpp>
#include <hypertune/remote/host_shell.hpp>

#include <fmt/format.h>

#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::k8s {

/// The container needs a POSIX shell. The shell's facts are not filled in yet.
inline remote::HostShell shell_of(Client client, const std::string& pod, const std::string& container,
                                  const std::stop_token& stop) {
  return {.title = fmt::format("pod '{}'", pod),
          .facts = {},
          .input_may_be_cut = true,
          .run = [client = std::move(client), pod, container, stop](std::string_view script,
                                                                    const std::vector<std::string>& arguments,
                                                                    const remote::ShellOptions& options) mutable {
            std::stop_source either;
            const std::stop_callback on_stop(stop, [&] { either.request_stop(); });
            const std::stop_callback on_own(options.stop, [&] { either.request_stop(); });
            const PodCommand command{
                .pod = pod, .command = remote::script_arguments(script, arguments), .container = container};
            try {
              auto done = client.run(command,
                                     {.input = options.input,
                                      .hold_input = options.hold_input,
                                      .take_out = options.take_out,
                                      .take_err = options.take_err,
                                      .max_output = options.max_output,
                                      .deadline = options.deadline,
                                      .stall = options.stall},
                                     either.get_token());
              return remote::RunResult{.exit = done.exit, .out = std::move(done.out), .err = std::move(done.err)};
            } catch (const ApiError& error) {
              // In the words of runc. No other pod of this image has one.
              const auto missing = fmt::format("exec: \"{}\": executable file not found", command.command.front());
              if (std::string_view(error.what()).find(missing) == std::string_view::npos) throw;
              throw remote::HostError(
                  remote::HostProblem::missing_program,
                  fmt::format("pod '{}': its image has no shell ({}), without which no file can be copied into it: "
                              "leave out file_mounts, or name an image with a shell",
                              pod, command.command.front()));
            }
          }};
}

}  // namespace hypertune::inline v0::k8s
