#include "serving.hpp"

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/detail/json_read.hpp>

#include <boost/json/serialize.hpp>
#include <fcntl.h>
#include <sys/file.h>

#include <string_view>
#include <system_error>

namespace hypertune::inline v0::dashboard {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_servers = 16, largest_status = 64 << 10;

// A server holds the lock of its folder as long as it lives.
bool is_alive(const fs::path& folder) {
  const auto lock = hypertune::detail::open_at(AT_FDCWD, (folder / "lock").c_str(), O_RDONLY | O_NOFOLLOW);
  return lock && ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0;
}

std::string read_status(const fs::path& path) {
  const auto file = hypertune::detail::open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  std::string text(largest_status + 1, '\0');
  if (!file || hypertune::detail::read_into(file.get(), text) != 0 || text.size() > largest_status) return {};
  return text;
}

}  // namespace

std::string serving_answer(const fs::path& experiment) {
  std::string out = R"({"servers":[)";
  std::size_t found = 0;
  std::error_code error;
  const fs::path folder = experiment / "serving";
  if (!fs::is_symlink(folder, error))
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (found == most_servers) break;
      if (entry.is_symlink(error) || !entry.is_directory(error) || !is_alive(entry.path())) continue;
      const auto status = hypertune::detail::parse_json(read_status(entry.path() / "status.json"));
      if (!status || !status->is_object()) continue;
      out += (found++ == 0 ? "" : ",") + boost::json::serialize(*status);
    }
  return out + "]}";
}

}  // namespace hypertune::inline v0::dashboard
