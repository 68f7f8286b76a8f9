// Messages that ranks exchange besides the collectives' data: their progress, and why they leave.
#pragma once

#include <hypertune/train/detail/collective_text.hpp>
#include <hypertune/trial/group.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace hypertune::inline v0::detail {

/// Sent as stored in memory: all ranks run builds of the same program, which the elements of collectives require, too.
struct GlooMessage {
  enum class Kind : std::uint32_t { query = 1, answer, left, failed };

  Kind kind = {};
  std::uint32_t round = 0;  ///< of a query and its answers
  std::uint64_t sequence =
      0;  ///< the collective that the sender is in, or was in last; of `left`: all up to this one are done
  std::uint64_t progress = 0;  ///< number of its steps that are done
  CollectiveShape shape = {};

  GroupError::Kind error = {};  ///< of `failed`
  std::uint32_t rank_count = 0;
  std::array<std::int32_t, 64> ranks = {};
  std::array<char, 400> text = {};

  void set_error(const GroupError& why) {
    error = why.kind();
    rank_count = static_cast<std::uint32_t>(std::min(why.ranks().size(), ranks.size()));
    std::copy_n(why.ranks().begin(), rank_count, ranks.begin());
    const std::string what = why.what();
    std::memcpy(text.data(), what.data(), std::min(what.size(), text.size() - 1));
  }
  GroupError get_error(int size) const {
    std::vector<int> named;
    for (std::size_t i = 0; i < std::min<std::size_t>(rank_count, ranks.size()); ++i)
      if (ranks[i] >= 0 && ranks[i] < size) named.push_back(ranks[i]);
    const std::size_t length = ::strnlen(text.data(), text.size());
    return {error <= GroupError::Kind::failed ? error : GroupError::Kind::failed, std::string(text.data(), length),
            named};
  }
};

}  // namespace hypertune::inline v0::detail
