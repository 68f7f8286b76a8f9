#include "read_once.hpp"

#include "gzip.hpp"
#include "page_files.hpp"

#include <hypertune/error.hpp>
#include <hypertune/record/journal_schema.hpp>

#include <cstddef>
#include <system_error>

namespace hypertune::inline v0::dashboard {

std::unique_ptr<Experiments> read_once(const std::vector<std::filesystem::path>& folders) {
  auto experiments = std::make_unique<Experiments>(folders, false);
  const auto all = experiments->all();
  if (all.empty())
    fail(Errc::usage, "there is no experiment in '{}' or below it: name the folder of one", folders.front().string());
  for (const auto& one : all) {
    while (one->read()) {}
    // Among experiments found below a folder one may be damaged; its state shows that. For one that was named it is an
    // error.
    if (one->brief().version == 0) {
      for (const auto& folder : folders) {
        std::error_code none;
        if (std::filesystem::equivalent(folder, one->folder, none)) one->look([](const auto&) {});
      }
    }
  }
  return experiments;
}

std::optional<std::string> page_text(std::string_view path) {
  constexpr std::size_t most = std::size_t{16} << 20U;
  const PageFile* file = find_page_file(path);
  return file == nullptr ? std::nullopt : gunzipped(file->gzip, most);
}

}  // namespace hypertune::inline v0::dashboard
