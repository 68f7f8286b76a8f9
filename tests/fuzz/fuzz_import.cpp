// Experiments of other programs are files that may hold anything: a journal of Optuna, a folder of Ray Tune.
#include "import/study.hpp"

#include <hypertune/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

namespace {

namespace fs = std::filesystem;
namespace in = hypertune::detail::import;

void write(const fs::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

// A folder that lasts as long as the process.
const fs::path& folder() {
  struct Folder {
    fs::path path = [] {
      std::string name = (fs::temp_directory_path() / "hypertune-fuzz-XXXXXX").string();
      if (::mkdtemp(name.data()) == nullptr) std::abort();
      return fs::path(name);
    }();
    ~Folder() { fs::remove_all(path); }
  };
  static const Folder made;
  return made.path;
}

template <class Read>
void read(const Read& read) {
  try {
    static_cast<void>(read());
  } catch (const hypertune::Error& e) {
    if (e.code() != hypertune::Errc::input && e.code() != hypertune::Errc::usage) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('{')) {
    write(folder() / "a.log", text);
    for (const char* study : {"", "a"})
      read([&] { return in::read_optuna_journal(folder() / "a.log", {.study = study, .metric = {}, .mode = {}}); });
    return 0;
  }
  // The files of a trial, and of its experiment, with this between them.
  constexpr std::string_view between = "\n--\n";
  fs::create_directory(folder() / "trial");
  for (const auto& [name, place] :
       std::to_array<std::pair<const char*, const char*>>({{"params.json", "trial"},
                                                           {"result.json", "trial"},
                                                           {"error.txt", "trial"},
                                                           {"experiment_state-1.json", ""}})) {
    const auto end = text.find(between);
    write(folder() / place / name, text.substr(0, end));
    text = end == std::string_view::npos ? "" : text.substr(end + between.size());
  }
  read([&] { return in::read_ray(folder(), {.study = {}, .metric = "loss", .mode = hypertune::Mode::minimize}); });
  return 0;
}
