// Reading and writing files with secrets.
#include "private_file.hpp"

#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace hypertune::inline v0::detail {

std::string error_text(int error) { return std::generic_category().message(error); }

std::string read_private_file(const std::filesystem::path& path, std::size_t max_size) {
  const Descriptor file = open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK);
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0)
    fail(Errc::io, "cannot open '{}': {}", path.string(), error_text(errno));
  if (!S_ISREG(status.st_mode)) fail(Errc::usage, "'{}' is no ordinary file", path.string());
  if ((status.st_mode & 077U) != 0)
    fail(Errc::usage, "'{}' holds a secret, but others may read it: chmod 600 it", path.string());
  std::string text(max_size + 1, '\0');
  if (const int error = read_into(file.get(), text))
    fail(Errc::io, "cannot read '{}': {}", path.string(), error_text(error));
  if (text.size() > max_size) fail(Errc::usage, "'{}' is longer than what it should hold", path.string());
  return text;
}

void write_private_file(const std::filesystem::path& path, std::string_view text) {
  const Descriptor file = open_at(AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!file) fail(Errc::io, "cannot create '{}': {}", path.string(), error_text(errno));
  if (const int error = write_all(file.get(), text))
    fail(Errc::io, "cannot write '{}': {}", path.string(), error_text(error));
}

}  // namespace hypertune::inline v0::detail
