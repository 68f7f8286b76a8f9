// Files that are replaced whole.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/detail/read_file.hpp>
#include <hypertune/detail/replace_file.hpp>
#include <hypertune/error.hpp>
#include <hypertune/record/detail/log_files.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace ht = hypertune;

namespace {
auto entries(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}
}  // namespace

TEST_CASE("a file that is replaced again and again by several is whole whenever it is read") {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "text";
  const auto text = [](char letter) { return std::string(20000, letter); };
  ht::detail::replace_file(path, text('a'));
  std::atomic<int> writing = 3;
  std::vector<std::jthread> writers;
  for (const char letter : {'a', 'b', 'c'})
    writers.emplace_back([&, letter] {
      for (int i = 0; i < 30; ++i) ht::detail::replace_file(path, text(letter));
      --writing;
    });
  int odd = 0;
  while (writing > 0) {
    const std::string read = ht::detail::read_whole(path);
    odd += read.size() != 20000 || std::count(read.begin(), read.end(), read.front()) != 20000;
  }
  writers.clear();
  CHECK(odd == 0);
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a file that cannot be replaced stays as it was, and nothing is left beside it") {
  const TemporaryDirectory folder;
  std::filesystem::create_directories(folder.path() / "taken/within");
  CHECK_THROWS_AS(ht::detail::replace_file(folder.path() / "taken", "text"), ht::Error);
  CHECK_THROWS_AS(ht::detail::replace_file(folder.path() / "none/file", "text"), ht::Error);
  CHECK(std::filesystem::is_directory(folder.path() / "taken/within"));
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a file is made for whom its mode says") {
  const TemporaryDirectory folder;
  ht::detail::replace_file(folder.path() / "secret", "text", 0600);
  struct stat status{};
  REQUIRE(::stat((folder.path() / "secret").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0600U);
}

TEST_CASE("a small file is read whole") {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "text";
  CHECK_FALSE(ht::detail::read_file(path));
  CHECK_FALSE(ht::detail::read_file(folder.path()));  // it can be opened, but not read
  ht::detail::replace_file(path, "two\nlines");
  CHECK(ht::detail::read_file(path) == "two\nlines");
  const std::string long_text(std::size_t{40} << 10U, 'x');
  ht::detail::replace_file(folder.path() / "long", long_text);
  CHECK(ht::detail::read_file(folder.path() / "long") == long_text);
  std::string text(5, '\0');
  const auto file = ht::detail::open_at(AT_FDCWD, path.c_str(), O_RDONLY);
  CHECK(ht::detail::read_into(file.get(), text) == 0);
  CHECK(text == "two\nl");
  CHECK(ht::detail::read_into(file.get(), text) == 0);
  CHECK(text == "ines");
  CHECK(ht::detail::read_into(-1, text) == EBADF);
  CHECK(text.empty());
}
