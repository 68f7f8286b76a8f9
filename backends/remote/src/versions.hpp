// Versions of programs and file mounts on a host, named by content.
#pragma once

#include <hypertune/remote/shipping.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace hypertune::inline v0::remote::detail {

// $1: a folder with one folder per version, named by its hash; its time is the time of its last use. $2: number of
// latest versions to keep, $3: minutes without use after which others are removed. A version is renamed before it is
// removed.
inline constexpr std::string_view prune_script = R"sh(
prune() (
  cd -- "$1" || exit 0
  delete() { find "$1" -type d ! -perm -0700 -exec chmod u+rwx {} \; ; rm -rf -- "$1"; }
  count=0
  ls -1t | while IFS= read -r version; do
    case $version in *[!0-9a-f]*|'') continue;; esac
    count=$((count + 1))
    [ "$count" -le "$2" ] && continue
    [ -n "$(find "./$version" -prune -mmin "+$3")" ] && mv -- "$version" ".gone-$version" && delete "./.gone-$version"
  done
  find . -mindepth 1 -maxdepth 1 -name '.*' -mmin +1440 | while IFS= read -r left; do delete "$left"; done
) 2>/dev/null
)sh";

struct HashedFile {
  std::string hash;
  std::uint64_t size = 0;
};
HashedFile hash_file(const std::filesystem::path& path);

std::string prune_minutes(const ShipOptions& options);
std::string prune_keep(const ShipOptions& options);

}  // namespace hypertune::inline v0::remote::detail
