// Part of hypertune::train_cuda: finds missing ranks. NCCL does not tell which rank a collective waits for. So a rank
// that has waited for a quarter of the timeout announces at the Rendezvous how far it has come, and a rank whose
// timeout has passed looks which ranks have not. Short collectives cost nothing.
#include "nccl_group.hpp"

#include <hypertune/train/detail/rendezvous_values.hpp>

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

// Other ranks look for the number of their own operation, which may differ from this rank's by the number of operations
// in progress. So the last 64 numbers are announced.
void NcclGroup::announce(std::uint64_t number) {
  const std::uint64_t most = number < 64 ? 1 : number - 63;
  for (std::uint64_t i = std::max(announced_ + 1, most); i <= number; ++i) announce_one(i);
  announced_ = std::max(announced_, number);
}

void NcclGroup::announce_one(std::uint64_t number) {
  rendezvous_.set(key(fmt::format("at/{}/{}", number, rank())), "1");
}

// The ranks that have not reached this operation. Takes at most half of the timeout: a rank that has just arrived
// announces that after a quarter. A rank that gives up also announces the next operations, unless its stream is
// blocked: an error may reach the other ranks one operation later, and then this rank is not the missing one.
std::vector<int> NcclGroup::ranks_not_arrived(std::uint64_t number) {
  if (number == 0) return ranks_not_connected();  // not yet connected
  const std::uint64_t here = arrived();
  announce(here == operations_ ? operations_ + 4 : here);
  return ranks_without_key(fmt::format("at/{}/", number), steady_after(options_.timeout * 0.4));
}

std::vector<int> NcclGroup::ranks_without_key(const std::string& prefix, SteadyTime limit) {
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

// If the Rendezvous throws because the generation is over, that is the reason.
void NcclGroup::give_up_late(std::uint64_t number) {
  std::vector<int> ranks = ranks_not_arrived(number);
  const std::string who = ranks.empty() ? "all ranks have come to" : ranks_text(ranks) + " did not come to";
  const auto kind = ranks.empty() ? GroupError::Kind::failed : GroupError::Kind::late;
  give_up({kind, fmt::format("NCCL: {} collective {}, which is not done after {} s", who, number, options_.timeout),
           std::move(ranks)});
}

// The other ranks find that this rank has not announced this operation.
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
  std::vector<int> ranks = ranks_not_arrived(number);  // a network error usually means that a rank has ended
  if (!ranks.empty()) text += fmt::format("; {} did not come to it", ranks_text(ranks));
  const bool lost = error == ncclRemoteError || !ranks.empty();
  give_up({lost ? GroupError::Kind::lost : GroupError::Kind::failed, text, std::move(ranks)});
}

}  // namespace hypertune::inline v0::detail
