// The disk that the folders of trials take, and when a user is told.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/tune/detail/folder_growth.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

namespace ht = hypertune;

TEST_CASE("the folders of trials: once, before they fill the disk") {
  const TemporaryDirectory folder;
  constexpr std::size_t size = std::size_t{1} << 20U;
  for (int trial = 0; trial < 2; ++trial) {
    const auto inner = folder.path() / std::to_string(trial) / "model";
    std::filesystem::create_directories(inner);
    std::string content(size, 'x');
    for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * i % 251);
    std::ofstream(inner / "weights", std::ios::binary) << content;
  }
  // A file with a hole takes what is written of it.
  std::ofstream(folder.path() / "1" / "sparse") << "";
  std::filesystem::resize_file(folder.path() / "1" / "sparse", std::size_t{1} << 40U);
  const double one = ht::detail::bytes_below(folder.path() / "0");
  CHECK(one >= 0x1p20);
  CHECK(one < 0x1p21);
  CHECK(ht::detail::bytes_below(folder.path() / "1") < 0x1p22);
  CHECK(ht::detail::bytes_below(folder.path() / "none") == 0);

  ht::detail::FolderGrowth growth(folder.path());
  CHECK_FALSE(growth.ended(0, 30));  // it is little
  CHECK_FALSE(growth.ended(1, 30));
  CHECK_FALSE(growth.ended(7, 30));            // of which there is no folder
  CHECK_FALSE(growth.told(100 * 0x1p20, 30));  // 30 MiB of 102
  const auto text = growth.told(40 * 0x1p20, 30);
  REQUIRE(text);
  CHECK(text->find("the folders of 2 trials in '" + folder.path().string() +
                   "' take 2.0 MiB, and are kept: 30 of them "
                   "will take 30.") == 0);
  CHECK(text->find("40.0 MiB are free") != std::string::npos);

  ht::detail::FolderGrowth endless(folder.path());
  CHECK_FALSE(endless.ended(0, 0));
  CHECK_FALSE(endless.told(9 * 0x1p20, 0));
  CHECK(endless.told(0x1p20, 0).value_or("").find("take 1.0 MiB, and are kept: 1.0 MiB are free") != std::string::npos);
}

TEST_CASE("where many trials have no folder, few of the others are looked at until one has") {
  const TemporaryDirectory folder;
  ht::detail::FolderGrowth growth(folder.path());
  for (int trial = 0; trial < 100; ++trial) growth.ended(trial, 0);
  for (const int trial : {127, 128, 129}) {
    std::filesystem::create_directories(folder.path() / std::to_string(trial));
    std::ofstream(folder.path() / std::to_string(trial) / "weights") << std::string(std::size_t{1} << 20U, 'x');
    growth.ended(trial, 0);
  }
  CHECK(growth.told(0, 0).value_or("").starts_with("the folders of 2 trials"));  // 128 and 129
}
