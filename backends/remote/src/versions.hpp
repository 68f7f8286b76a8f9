// What programs and file mounts have in common: versions by content on a host.
#pragma once

#include <hypertune/remote/shipping.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace hypertune::inline v0::remote::detail {

// $1: a folder with one folder for each version, named by its hash; its time is that of its last use. $2: how many of
// the latest stay, $3: minutes after which others go. What goes is out of sight before it is taken apart.
inline constexpr std::string_view prune_script = R"sh(
prune() (
  cd -- "$1" || exit 0
  count=0
  ls -1t | while IFS= read -r version; do
    case $version in *[!0-9a-f]*|'') continue;; esac
    count=$((count + 1))
    [ "$count" -le "$2" ] && continue
    [ -n "$(find "./$version" -prune -mmin "+$3")" ] && mv -- "$version" ".gone-$version" && rm -rf -- ".gone-$version"
  done
  find . -mindepth 1 -maxdepth 1 -name '.*' -mmin +1440 -exec rm -rf -- {} +
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
