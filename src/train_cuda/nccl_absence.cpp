// Part of hypertune::train_cuda: who is missing. NCCL does not say which rank a collective waits for. So a rank that
// has waited for a quarter of the timeout says at the Rendezvous how far it has come, and one whose time is up looks
// who has not said so. What is quick costs nothing.
#include "nccl_group.hpp"

#include <hypertune/train/rendezvous_values.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

namespace {

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

}  // namespace

// Others look for their own number, which may be behind or ahead of this rank's by what is under way: so the last 64
// are announced.
void NcclGroup::announce(std::uint64_t number) {
  const std::uint64_t most = number < 64 ? 1 : number - 63;
  for (std::uint64_t i = std::max(announced_ + 1, most); i <= number; ++i) announce_one(i);
  announced_ = std::max(announced_, number);
}

void NcclGroup::announce_one(std::uint64_t number) {
  rendezvous_.set(key(fmt::format("at/{}/{}", number, rank())), "1");
}

// The ranks that have not come to this operation. Takes at most half of the timeout: one that came just now will say so
// when a quarter has passed. A rank that gives up says so for what would have come next, too: an error may reach the
// others one operation later, and this one is not the missing one. Unless its stream is held up.
std::vector<int> NcclGroup::absent(std::uint64_t number) {
  if (number == 0) return not_there();  // not yet connected
  const std::uint64_t here = arrived();
  announce(here == operations_ ? operations_ + 4 : here);
  return without(fmt::format("at/{}/", number), steady_after(options_.timeout * 0.4));
}

std::vector<int> NcclGroup::without(const std::string& prefix, SteadyTime limit) {
  std::vector<int> others, ranks;
  std::vector<std::string> keys;
  for (int other = 0; other < size(); ++other)
    if (other != rank()) {
      others.push_back(other);
      keys.push_back(key(prefix + std::to_string(other)));
    }
  const auto values = rendezvous_values(rendezvous_, keys, limit);
  for (std::size_t i = 0; i < others.size(); ++i)
    if (!values[i]) ranks.push_back(others[i]);
  return ranks;
}

// What the Rendezvous throws (the generation is over) is the reason then.
void NcclGroup::give_up_late(std::uint64_t number) {
  std::vector<int> ranks = absent(number);
  const std::string who = ranks.empty() ? "all ranks have come to" : ranks_text(ranks) + " did not come to";
  const auto kind = ranks.empty() ? GroupError::Kind::failed : GroupError::Kind::late;
  give_up({kind, fmt::format("NCCL: {} collective {}, which is not done after {} s", who, number, options_.timeout),
           std::move(ranks)});
}

// The others find that this rank has not said that it is there.
void NcclGroup::give_up_behind(std::uint64_t number) {
  give_up({GroupError::Kind::late,
           fmt::format("NCCL: rank {} (this one) did not come to collective {}: what was put into its stream before is "
                       "not done after {} s",
                       rank(), number, options_.timeout),
           {rank()}});
}

void NcclGroup::give_up_failed(ncclResult_t error, const char* what, std::uint64_t number) {
  std::string text = fmt::format("NCCL: {} failed: {}", what, ncclGetErrorString(error));
  if (const std::string last = device_->handle.last_error(); !last.empty()) text += fmt::format(" ({})", last);
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (const cudaError_t own = device_->error(); is_device_lost(own))
    give_up({GroupError::Kind::device, fmt::format("{}; CUDA: {}", text, cudaGetErrorString(own))});
  if (error != ncclRemoteError && error != ncclSystemError) give_up({GroupError::Kind::failed, text});
  std::vector<int> ranks = absent(number);  // a network's error is mostly a rank's end
  if (!ranks.empty()) text += fmt::format("; {} did not come to it", ranks_text(ranks));
  const bool lost = error == ncclRemoteError || !ranks.empty();
  give_up({lost ? GroupError::Kind::lost : GroupError::Kind::failed, text, std::move(ranks)});
}

}  // namespace hypertune::inline v0::detail
