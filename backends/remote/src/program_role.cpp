// ProgramRole: functions of a program that replace its main().
#include <hypertune/detail/say.hpp>
#include <hypertune/remote/program_role.hpp>

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::remote {
namespace {

// Created at first use, because static objects of other files are initialised in any order.
std::vector<ProgramRole>& roles() {
  static std::vector<ProgramRole> all;
  return all;
}

}  // namespace

bool add_program_role(ProgramRole role) {
  roles().push_back(std::move(role));
  return true;
}

std::optional<int> play_program_role(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const auto role = std::find_if(roles().begin(), roles().end(),
                                   [&](const auto& each) { return each.argument == std::string_view(argv[i]); });
    if (role == roles().end()) continue;
    std::vector<std::string> command(argv, argv + i);
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (i + 2 < argc) command.insert(command.end(), argv + i + 2, argv + argc);
    try {
      return role->run(value, std::move(command));
    } catch (const std::exception& error) {
      hypertune::detail::say(std::string("hypertune: ") + error.what());
      return 2;
    }
  }
  return std::nullopt;
}

}  // namespace hypertune::inline v0::remote
