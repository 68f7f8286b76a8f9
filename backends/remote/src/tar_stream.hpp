// TarStream: a tar archive made while it is read, so that no file is ever in memory as a whole.
#pragma once

#include "host_failures.hpp"

#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/remote/host_error.hpp>

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote::detail {

/// One member of an archive: text, a local file, a folder or a symbolic link.
struct TarMember {
  char type = '0';  ///< '0' a file, '2' a symbolic link, '5' a folder
  std::string name;
  unsigned mode = 0644;
  std::int64_t time = 0;
  std::string text = {};              ///< the content, or the target of a link
  std::filesystem::path source = {};  ///< if not empty, the file with the content
  std::uint64_t size = 0;             ///< size of `source`
};

/// The member for a file, symbolic link or folder: `path` below `root`, or `root` itself if `path` is empty. `root` may
/// be a symbolic link. HostError if a link cannot be read.
inline TarMember member_of(const std::filesystem::path& root, const std::string& path, const struct stat& info) {
  TarMember member{.name = path, .mode = info.st_mode & 07777U, .time = info.st_mtime};
  std::error_code error;
  if (S_ISDIR(info.st_mode)) {
    member.type = '5';
  } else if (S_ISLNK(info.st_mode)) {
    member.type = '2';
    member.text = std::filesystem::read_symlink(root / path, error).string();
  } else {
    member.source = path.empty() ? std::filesystem::canonical(root, error) : root / path;
    member.size = static_cast<std::uint64_t>(info.st_size);
  }
  if (error) fail_local("read", root / path, error.value());
  return member;
}

/// The format is ustar with GNU's members for long names, which every tar can read.
class TarStream {
 public:
  explicit TarStream(std::vector<TarMember> members) : members_(std::move(members)) {}

  /// The next bytes; empty at the end. HostError if a file has become shorter or cannot be read.
  std::string_view next() {
    if (file_) {
      if (left_ > 0) return from_file();
      file_ = hypertune::detail::Descriptor();
    }
    text_.clear();
    while (at_ < members_.size() && text_.size() < 65536) {
      const auto& member = members_[at_++];
      if (member.name.size() > 99) long_name('L', member.name);
      if (member.type == '2' && member.text.size() > 99) long_name('K', member.text);
      if (!member.source.empty()) {
        header(member.type, member.name, {}, member.mode, member.size, member.time);
        open(member);
        return text_;
      }
      const bool link = member.type == '2';
      header(member.type, member.name, link ? member.text : "", member.mode, link ? 0 : member.text.size(),
             member.time);
      if (!link) padded(member.text);
    }
    if (at_ == members_.size() && !ended_) {
      text_.append(1024, '\0');
      ended_ = true;
    }
    return text_;
  }

 private:
  void open(const TarMember& member) {
    file_ = hypertune::detail::open_at(AT_FDCWD, member.source.c_str(), O_RDONLY | O_NOFOLLOW);
    if (!file_) {
      const int error = errno;
      throw HostError(HostProblem::local_file, fmt::format("cannot read '{}': {}", member.source.string(),
                                                           std::generic_category().message(error)));
    }
    left_ = member.size;
    padding_ = (512 - member.size % 512) % 512;
    if (left_ == 0) file_ = hypertune::detail::Descriptor();
  }
  std::string_view from_file() {
    const auto want = std::min<std::uint64_t>(left_, hypertune::detail::ReadBuffer::size - 512);
    const ssize_t n = hypertune::detail::read_some(file_.get(), buffer_.data(), want);
    if (n <= 0)
      throw HostError(HostProblem::local_file,
                      fmt::format("'{}' changed while it was sent: try again", members_[at_ - 1].source.string()));
    left_ -= static_cast<std::uint64_t>(n);
    auto size = static_cast<std::size_t>(n);
    if (left_ == 0) {
      std::memset(buffer_.data() + size, 0, padding_);
      size += padding_;
    }
    return {buffer_.data(), size};
  }

  void padded(std::string_view bytes) {
    text_ += bytes;
    text_.append((512 - bytes.size() % 512) % 512, '\0');
  }
  void long_name(char type, const std::string& name) {
    header(type, "././@LongLink", "", 0644, name.size() + 1, 0);
    padded(name + '\0');
  }
  void header(char type, std::string_view name, std::string_view link, unsigned mode, std::uint64_t size,
              std::int64_t time) {
    std::array<char, 512> block{};
    const auto put = [&](std::size_t at, std::size_t room, std::string_view bytes) {
      std::copy_n(bytes.begin(), std::min(room, bytes.size()), block.begin() + static_cast<std::ptrdiff_t>(at));
    };
    put(0, 100, name.substr(0, 99));
    put(100, 8, fmt::format("{:07o}", mode));
    put(108, 8, "0000000");
    put(116, 8, "0000000");
    if (size < (std::uint64_t{1} << 33U)) {
      put(124, 12, fmt::format("{:011o}", size));
    } else {  // GNU's binary form
      block[124] = static_cast<char>(0x80);
      for (std::size_t i = 0; i < 8; ++i) block[128 + i] = static_cast<char>(size >> (56 - 8 * i) & 0xffU);
    }
    put(136, 12, fmt::format("{:011o}", std::clamp<std::int64_t>(time, 0, (std::int64_t{1} << 33U) - 1)));
    put(148, 8, "        ");
    block[156] = type;
    put(157, 100, link.substr(0, 99));
    put(257, 8, std::string_view("ustar  \0", 8));
    unsigned sum = 0;
    for (const char c : block) sum += static_cast<unsigned char>(c);
    put(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
    text_.append(block.data(), block.size());
  }

  std::vector<TarMember> members_;
  std::size_t at_ = 0;
  bool ended_ = false;
  std::string text_;
  hypertune::detail::Descriptor file_;
  std::uint64_t left_ = 0;
  std::size_t padding_ = 0;
  hypertune::detail::ReadBuffer buffer_;
};

}  // namespace hypertune::inline v0::remote::detail
