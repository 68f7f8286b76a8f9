// Part of hypertune::train_cuda: connects the ranks of a generation by a new communicator, or by one made from the
// previous one. Each rank publishes at the Rendezvous what it has (`NAME/has/RANK`). Rank 0 decides, and all follow its
// plan (`NAME/plan`).
#include "nccl_group.hpp"

#include <hypertune/detail/hex.hpp>
#include <hypertune/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

namespace {

constexpr double look_seconds = 0.1;  // between two checks whether the generation goes on

ncclUniqueId id_of(std::string_view text) {
  ncclUniqueId id{};
  const auto bytes = from_hex(text);
  if (!bytes || bytes->size() != sizeof id.internal)
    throw GroupError(GroupError::Kind::failed, "NCCL: what stands at the rendezvous is no unique id");
  std::copy(bytes->begin(), bytes->end(), id.internal);
  return id;
}

ncclConfig_t non_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

// FNV-1a: a name for a communicator that all its ranks can compute.
std::string digest(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

// What a rank has from the previous generation: its communicator, its rank there and the number of ranks, and whether
// the communicator is healthy or revoked. "none": nothing to continue from.
struct Offer {
  std::string token;
  int rank = -1, size = 0;
  bool well = false;
};
Offer parse_offer(const std::string& text) {
  Offer offer;
  std::string state;
  std::istringstream in(text);
  in >> offer.token >> offer.rank >> offer.size >> state;
  if (!in) return {};
  offer.well = state == "well";
  return offer;
}

}  // namespace

struct NcclGroup::Plan {
  std::string way;        ///< fresh, shrink or grow
  std::string id;         ///< not used by shrink
  std::vector<int> left;  ///< of shrink: the former ranks to remove
  std::string text;
};

void NcclGroup::connect(NcclGroup* former) {
  const DeviceGuard guard(nccl_.device);
  const auto deadline = steady_after(options_.timeout);
  or_give_up([&] {
    const Plan plan = agree(former, deadline);
    if (plan.way == "shrink" && former) {
      token_ = digest(plan.text + former->token_);
      shrink(plan, *former, deadline);
    } else if (plan.way == "grow") {
      token_ = digest(plan.text);
      grow(plan, former, deadline);
    } else {
      token_ = digest(plan.text);
      if (former) former->release(false);
      create(plan, deadline);
    }
    if (former) former->release(true);
  });
}

std::string NcclGroup::offer(NcclGroup* former) const {
  if (!former || !nccl_can_shrink || !former->has_no_background_work()) return "none";
  NcclHandle& handle = former->device_->handle;
  if (!handle.exists()) return "none";
  const bool well = handle.call([](ncclComm_t) { return ncclSuccess; }) == ncclSuccess && handle.state() == ncclSuccess;
  if (!well && (!nccl_can_revoke || handle.state() != ncclSuccess)) return "none";
  return fmt::format("{} {} {} {}", former->token_, former->rank(), former->size(), well ? "well" : "revoked");
}

NcclGroup::Plan NcclGroup::agree(NcclGroup* former, SteadyTime deadline) {
  const std::string own = offer(former);
  rendezvous_.set(key(fmt::format("has/{}", rank())), own);
  Plan plan;
  if (rank() == 0) {
    plan = decide(own, deadline);
    if (plan.way == "fresh") {
      ncclUniqueId id{};
      if (const ncclResult_t result = ncclGetUniqueId(&id); result != ncclSuccess)
        give_up_failed(result, "a unique id", 0);
      plan.id = to_hex(id.internal);
    } else if (plan.way == "grow") {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 2)
      const auto id = std::make_shared<ncclUniqueId>();
      const ncclResult_t result =
          call_in_background(*former, [id](ncclComm_t comm) { return ncclCommGetUniqueId(comm, id.get()); }, deadline);
      if (result != ncclSuccess && result != ncclInProgress) give_up_failed(result, "a unique id to grow", 0);
      plan.id = to_hex(id->internal);
#endif
    }
    plan.text = fmt::format("{} {} {}", plan.way, plan.id.empty() ? "-" : plan.id, fmt::join(plan.left, " "));
    rendezvous_.set(key("plan"), plan.text);
  } else {
    plan.text = expect(key("plan"), "rank 0 has not said how to connect", deadline);
    std::istringstream in(plan.text);
    in >> plan.way >> plan.id;
    for (int rank = 0; in >> rank;) plan.left.push_back(rank);
  }
  return plan;
}

// Shrinks the former communicator if all ranks come from it in the same order; grows it if all of its ranks are there
// and the new ones follow them.
NcclGroup::Plan NcclGroup::decide(const std::string& own, SteadyTime deadline) {
  Plan plan{.way = "fresh", .id = {}, .left = {}, .text = {}};
  const Offer mine = parse_offer(own);
  if (mine.token.empty()) return plan;  // a new rank 0: the offers of the others do not matter
  std::vector<Offer> offers{mine};
  for (int other = 1; other < size(); ++other)
    offers.push_back(parse_offer(expect(key(fmt::format("has/{}", other)), "", deadline)));
  const auto of_former = [&](const Offer& offer) { return offer.token == mine.token; };
  const bool in_order =
      std::is_sorted(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) { return a.rank < b.rank; });
  if (std::all_of(offers.begin(), offers.end(), of_former) && in_order && size() < mine.size) {
    plan.way = "shrink";
    for (int rank = 0; rank < mine.size; ++rank)
      if (std::none_of(offers.begin(), offers.end(), [&](const Offer& offer) { return offer.rank == rank; }))
        plan.left.push_back(rank);
  } else if (nccl_can_grow && size() > mine.size) {
    bool fits = true;
    for (int rank = 0; rank < size(); ++rank) {
      const Offer& offer = offers[static_cast<std::size_t>(rank)];
      fits = fits && (rank < mine.size ? of_former(offer) && offer.rank == rank && offer.well : offer.token.empty());
    }
    if (fits) plan.way = "grow";
  }
  return plan;
}

std::string NcclGroup::expect(const std::string& name, const std::string& what, SteadyTime deadline) {
  if (auto value = rendezvous_.wait(name, seconds_until(deadline))) return *value;
  std::vector<int> ranks = ranks_not_connected();
  give_up({GroupError::Kind::late,
           fmt::format("NCCL: {} within {} s{}", what.empty() ? "not all ranks have come" : what, options_.timeout,
                       ranks.empty() ? "" : fmt::format("; missing: {}", fmt::join(ranks, ", "))),
           ranks});
}

// A rank that has arrived has published that before, so this waits only as long as an answer may take.
std::vector<int> NcclGroup::ranks_not_connected() {
  return ranks_without_key("has/", steady_after(std::min(1.0, options_.timeout * 0.1)));
}

void NcclGroup::create(const Plan& plan, SteadyTime deadline) {
  ncclConfig_t config = non_blocking();
  const ncclResult_t result = ncclCommInitRankConfig(&device_->made, size(), id_of(plan.id), rank(), &config);
  device_->handle.adopt(device_->made);
  if (result != ncclSuccess && result != ncclInProgress) give_up_failed(result, "connecting", 0);
  wait_for_peers(deadline, nullptr);
}

void NcclGroup::shrink([[maybe_unused]] const Plan& plan, [[maybe_unused]] NcclGroup& former,
                       [[maybe_unused]] SteadyTime deadline) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3)
  std::vector<int> left = plan.left;
  // NCCL writes `made` when it is done, or was aborted.
  const ncclResult_t result = former.device_->handle.inherit([&](ncclComm_t comm) {
    return ncclCommShrink(comm, left.data(), static_cast<int>(left.size()), &device_->made, nullptr,
                          NCCL_SHRINK_DEFAULT);
  });
  if (result != ncclSuccess && result != ncclInProgress) give_up_failed(result, "shrinking", 0);
  try {
    wait_for_peers(deadline, &former.device_->handle);
  } catch (...) {
    former.give_back([mine = device_](NcclDevice& theirs) {
      theirs.handle.abort();  // after this nothing is written to `made`
      const NcclHandle rest(mine->made);
    });
    throw;
  }
  device_->handle.adopt(device_->made);
  wait_for_peers(deadline, nullptr);
  origin_ = "shrunk";
#endif
}

// A former rank's call communicates with its peers before it returns, so it is made on another thread.
void NcclGroup::grow([[maybe_unused]] const Plan& plan, [[maybe_unused]] NcclGroup* former,
                     [[maybe_unused]] SteadyTime deadline) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 2)
  const ncclUniqueId id = id_of(plan.id);
  if (!former) {
    ncclConfig_t config = non_blocking();
    const ncclResult_t result = ncclCommGrow(nullptr, size(), &id, rank(), &device_->made, &config);
    device_->handle.adopt(device_->made);
    if (result != ncclSuccess && result != ncclInProgress) give_up_failed(result, "growing", 0);
    wait_for_peers(deadline, nullptr);
  } else {
    const auto adopted = std::make_shared<bool>(false);
    try {
      const auto call = [mine = device_, id, ranks = size(), leads = rank() == 0](ncclComm_t comm) {
        return ncclCommGrow(comm, ranks, leads ? &id : nullptr, -1, &mine->made, nullptr);
      };
      const ncclResult_t result = call_in_background(*former, call, deadline);
      device_->handle.adopt(device_->made);
      *adopted = true;
      if (result != ncclSuccess && result != ncclInProgress) give_up_failed(result, "growing", 0);
      wait_for_peers(deadline, &former->device_->handle);
      wait_for_peers(deadline, nullptr);
    } catch (const Error& error) {
      end({GroupError::Kind::failed, error.what()});  // unless it has ended already
      // After the call, if it has not returned yet. The new communicator is released before the one it is made from.
      former->give_back([mine = device_, adopted](NcclDevice& theirs) {
        static_cast<void>(theirs.handle.call([](ncclComm_t) { return ncclSuccess; }));
        if (*adopted)
          mine->handle.abort();
        else
          const NcclHandle rest(mine->made);
        theirs.handle.abort();
      });
      throw;
    }
  }
  origin_ = "grown";
#else
  give_up({GroupError::Kind::failed, "NCCL: this rank's version cannot grow a communicator (2.29.2 can)"});
#endif
}

// A call that may wait for peers, with this deadline. If it has not returned by then it continues, so that its
// communicator must be released on another thread, after it.
ncclResult_t NcclGroup::call_in_background(NcclGroup& of, std::function<ncclResult_t(ncclComm_t)> call,
                                           SteadyTime deadline) {
  const auto result = std::make_shared<ncclResult_t>(ncclUnhandledCudaError);
  const auto running = BackgroundCall::run([device = of.device_, call = std::move(call), result] {
    try {
      const DeviceGuard guard(device->number);
      *result = device->handle.call(call);
    } catch (const Error&) {}  // the device is lost
  });
  while (!running->wait(std::min(deadline, steady_after(look_seconds)))) {
    check_generation();
    if (std::chrono::steady_clock::now() >= deadline) give_up_connecting();
  }
  return *result;
}

// Waits until the new communicator, or the one that it is made from, is no longer in progress.
void NcclGroup::wait_for_peers(SteadyTime deadline, NcclHandle* parent) {
  NcclHandle& handle = parent ? *parent : device_->handle;
  auto look = steady_after(look_seconds);
  Pauses pauses;
  for (;;) {
    const ncclResult_t state = handle.state();
    if (state == ncclSuccess) return;
    if (state != ncclInProgress)
      give_up({GroupError::Kind::failed,
               fmt::format("NCCL: connecting failed: {} ({})", ncclGetErrorString(state), handle.last_error())});
    const auto now = std::chrono::steady_clock::now();
    if (now >= look) {
      check_generation();
      look = steady_after(look_seconds);
    }
    if (now >= deadline) give_up_connecting();
    pauses.pause();
  }
}

void NcclGroup::give_up_connecting() {
  std::vector<int> ranks = ranks_not_connected();
  const std::string who = ranks.empty() ? "all ranks are there, and are"
                                        : fmt::format("ranks {} are missing, and the others", fmt::join(ranks, ", "));
  give_up({GroupError::Kind::late, fmt::format("NCCL: {} not connected after {} s", who, options_.timeout), ranks});
}

// The Rendezvous throws if the generation is over.
void NcclGroup::check_generation() { static_cast<void>(rendezvous_.wait(key("nothing"), 0)); }

}  // namespace hypertune::inline v0::detail
