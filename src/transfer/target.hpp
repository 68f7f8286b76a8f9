// The requests to a CheckpointServer, and their URLs.
#pragma once

#include <hypertune/trial/checkpoint.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

///     /v1/trials/3/checkpoints                                     a line each: steps bytes digest name
///     /v1/trials/3/checkpoints/<digest>?name=step-27               the same line, if it is there completely; &deep=1
///     /v1/trials/3/checkpoints/<digest>/manifest?name=step-27      its manifest.json
///     /v1/trials/3/checkpoints/<digest>/chunks?name=step-27        its chunk list; 202: being computed, ask again
///     /v1/trials/3/checkpoints/<digest>/data?name=step-27          a Range of its content, file after file
struct Target {
  enum class What { list, status, manifest, chunks, data };
  What what = What::list;
  CheckpointInfo info;  ///< trial, digest, name (a hint: the digest decides)
  bool deep = false;
};

/// Parses untrusted text from the network; nullopt if it is not such a target.
std::optional<Target> parse_target(std::string_view text);
std::string to_string(const Target& target);

/// "bytes=first-last": one range with both ends.
struct ByteRange {
  std::uint64_t begin = 0, end = 0;  ///< end: one past the last
  std::uint64_t size() const { return end - begin; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};
std::optional<ByteRange> parse_range(std::string_view text, std::uint64_t total);

/// A line of a list. parse_info_line() takes untrusted text from the network: nullopt if it is not such a line.
std::string info_line(const CheckpointInfo& info);
std::optional<CheckpointInfo> parse_info_line(std::string_view line, TrialId trial);

}  // namespace hypertune::inline v0::detail
