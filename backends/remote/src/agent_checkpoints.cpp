// Agent: providing the checkpoint that a trial continues from, and sending its checkpoints to the driver.
#include "agent_state.hpp"

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/remove_tree.hpp>
#include <hypertune/net/spawn.hpp>

#include <filesystem>
#include <string>
#include <utility>

namespace hypertune::inline v0::remote::detail {

// The worker reads the whole checkpoint and so verifies it; here it is only found by name. After it was found damaged,
// the copy here is verified first, and then the driver is asked.
void Agent::resolve(const RunPointer& run) {
  if (run->over) return;
  if (run->candidate == run->launch.restore.size()) return begin(run, std::nullopt);
  const CheckpointInfo wanted = run->launch.restore[run->candidate];
  const bool trusted = run->damaged.empty();
  const auto in_place = std::make_shared<bool>(false);
  on_disk(
      [this, wanted, trusted, in_place]() -> std::optional<CheckpointInfo> {
        if (in_place_ && trusted && in_place_->names(wanted)) {
          *in_place = true;
          return wanted;
        }
        auto held = find_copy(*store_, wanted);
        if (!held || trusted) return held;
        try {
          store_->open(*held);
        } catch (const Error& e) {
          if (e.code() == Errc::corrupt) store_->set_aside(*held);
          return std::nullopt;
        }
        return held;
      },
      [this, run, in_place](std::optional<CheckpointInfo> held, const std::string&) {
        if (run->over) return;
        if (*in_place) return begin(run, std::move(held), false);
        // It may have been dropped meanwhile; from here on it is pinned.
        if (held && !may_be_there(*store_, *held)) held.reset();
        if (held) return begin(run, std::move(held));
        want(run, false);
      });
}

// The worker could not continue from the checkpoint.
void Agent::repair(const RunPointer& run) {
  constexpr int most = 3;
  unpin(run);
  if (++run->repairs > most) return refuse_start(run, run->damaged);
  run->resolving = true;
  resolve(run);
}

void Agent::want(const RunPointer& run, bool from_driver, std::vector<std::string> without) {
  const std::uint64_t transfer = next_transfer_++;
  wanted_[transfer] = run;
  channel_->send(
      wire::Want{transfer, run->launch.trial, run->launch.restore[run->candidate], from_driver, std::move(without)});
}

// Fetches from another host that has the checkpoint, or from the driver.
void Agent::on(const wire::Source& m) {
  const auto found = wanted_.find(m.transfer);
  if (found == wanted_.end()) return;
  if (!exchange_) fail(Errc::protocol, "a source of checkpoints, without the means to fetch them");
  const auto outcome = std::make_shared<FetchOutcome>();
  const auto done = [this, outcome, transfer = m.transfer, direct = !m.peers.empty()] {
    fetched(transfer, direct, *outcome);
  };
  try {
    fetches_.run([this, outcome, done, m, wanted = found->second->launch.restore[found->second->candidate]] {
      const auto stop = stop_fetches_.get_token();
      const auto attempt = [&](const auto& fetch) {
        try {
          outcome->report = fetch();
        } catch (const std::exception& e) { outcome->error = e.what(); }
      };
      if (m.peers.empty()) attempt([&] { return exchange_->fetch(tunnel_, "the driver", wanted, stop); });
      for (const auto& peer : m.peers) {
        attempt([&] { return exchange_->fetch(peer, m.content_id, wanted, stop); });
        if (outcome->report) break;
        outcome->without.push_back(peer);
      }
      asio::post(io_, done);
    });
  } catch (const std::exception& e) { give_up_copy(m.transfer, e.what()); }
}

void Agent::fetched(std::uint64_t transfer, bool direct, const FetchOutcome& outcome) {
  const auto node = wanted_.extract(transfer);
  if (!node || left_) return;
  const auto& run = node.mapped();
  if (const auto& report = outcome.report) {
    channel_->send(wire::Fetched{transfer, report->bytes_moved, report->bytes_reused, direct, outcome.without});
    arrived(run, report->checkpoint);
    return;
  }
  channel_->send(wire::Unavailable{transfer, outcome.error});
  if (run->over) return;
  if (direct) {
    channel_->send(Notice{hypertune::detail::format("a checkpoint that host '{}' needs comes through the driver: {}",
                                                    host_name_, outcome.error)});
    want(run, true, outcome.without);
  } else {
    refuse_start(run, outcome.error);
  }
}

// The copy is pinned before the cache makes room, because it could be dropped.
void Agent::arrived(const RunPointer& run, const CheckpointInfo& copy) {
  if (!run || run->over)
    cache_->add(copy, true);
  else if (may_be_there(*store_, copy))
    begin(run, copy);
  else
    resolve(run);  // another run's copy of the same content, which was dropped meanwhile
}

// `cached`: `from` is in this host's own store and has to stay there until the run has reported, because a program may
// read it long after its start.
void Agent::begin(const RunPointer& run, std::optional<CheckpointInfo> from, bool cached) {
  Launch launch = run->launch;
  launch.restore.clear();
  if (from) launch.restore.push_back(*from);
  launch.next_step = from ? from->steps : 0;
  launch.must_restore = from.has_value();
  if (cached) run->pinned = std::move(from);
  if (run->pinned) cache_->pin(*run->pinned);
  run->resolving = false;
  executor_.perform(std::move(launch));
}

void Agent::on(const wire::Unavailable& m) {
  const auto node = wanted_.extract(m.transfer);
  arriving_.erase(m.transfer);
  if (!node) return;
  const auto& run = node.mapped();
  if (!m.lost) {
    if (!run->over) refuse_start(run, m.why);
    return;
  }
  ++run->candidate;
  run->damaged.clear();
  resolve(run);
}

void Agent::on(wire::Offer& m) {
  const auto found = wanted_.find(m.transfer);
  if (found == wanted_.end()) return;
  try {
    arriving_[m.transfer] = std::make_shared<IncomingCopy>(*store_, m);
  } catch (const std::exception& e) { return give_up_copy(m.transfer, e.what()); }
  complete_copy(m.transfer);
}

void Agent::on(const wire::Piece& m) {
  const auto found = arriving_.find(m.transfer);
  if (found == arriving_.end()) return;  // given up already
  try {
    found->second->add(m.bytes);
  } catch (const std::exception& e) { return give_up_copy(m.transfer, e.what()); }
  complete_copy(m.transfer);
}

void Agent::complete_copy(std::uint64_t transfer) {
  const auto copy = arriving_.at(transfer);
  if (!copy->complete()) return;
  arriving_.erase(transfer);
  on_disk([copy]() -> std::optional<CheckpointInfo> { return copy->seal(); },
          [this, transfer](std::optional<CheckpointInfo> sealed, const std::string& error) {
            if (!sealed) return give_up_copy(transfer, error);
            channel_->send(wire::Fetched{transfer, sealed->bytes, 0, false});
            const auto node = wanted_.extract(transfer);
            arrived(node ? node.mapped() : nullptr, *sealed);
          });
}

// The driver has the checkpoint, but this host cannot store it.
void Agent::give_up_copy(std::uint64_t transfer, const std::string& why) {
  arriving_.erase(transfer);
  const auto node = wanted_.extract(transfer);
  channel_->send(wire::Unavailable{transfer, why});
  if (node && !node.mapped()->over) refuse_start(node.mapped(), why);
}

void Agent::refuse_start(const RunPointer& run, const std::string& why) {
  Cause cause{
      .source = FailureSource::infrastructure,
      .text = hypertune::detail::format("its checkpoint could not be copied to host '{}': {}", host_name_, why)};
  channel_->send(Failed{run->launch.trial, run->launch.attempt, std::move(cause), key_of(run->launch).second});
  forget(run);
}

// ---- Sending checkpoints to the driver ----

void Agent::offer(const RunPointer& run, const CheckpointInfo& made) {
  const std::uint64_t transfer = next_transfer_++;
  if (share_) {
    try {
      put_for_driver(*written_, made, transfer);
    } catch (const std::exception& e) { return complain(made, e.what()); }
    channel_->send(wire::Offer{.transfer = transfer, .attempt = run->launch.attempt, .info = made, .shared = true});
    ++run->copies;
    offered_[transfer] = {made, run};
    return;
  }
  if (exchange_ && made.bytes > begin_->inline_limit) {  // the driver fetches it
    cache_->add(made, false);
    channel_->send(wire::Offer{.transfer = transfer, .attempt = run->launch.attempt, .info = made, .by_content = true});
    ++run->copies;
    offered_[transfer] = {made, run};
    return;
  }
  try {
    Sending sending{std::make_unique<OutgoingCopy>(*store_, made, transfer, run->launch.attempt), run};
    cache_->add(made, false);
    channel_->send(sending.copy->offer());
    ++run->copies;
    offered_[transfer] = {made, run};
    sending_.push_back(std::move(sending));
    channel_->poke();
  } catch (const std::exception& e) { complain(made, e.what()); }
}

// Copies take turns, so that a large one does not delay the others.
std::optional<wire::Piece> Agent::next_whole() {
  while (!sending_.empty() && pace_->ready(channel_)) {
    Sending sending = std::move(sending_.front());
    sending_.pop_front();
    try {
      if (auto piece = sending.copy->next(pace_->max_piece())) {
        pace_->took(piece->bytes.size());
        sending_.push_back(std::move(sending));
        return piece;
      }
    } catch (const std::exception& e) {
      complain(sending.copy->offer().info, e.what());
      channel_->send(wire::Unavailable{sending.copy->offer().transfer, e.what()});
      taken(sending.copy->offer().transfer, false);
    }
  }
  return std::nullopt;
}

void Agent::on(const wire::Taken& m) {
  std::erase_if(sending_, [&](const auto& s) { return s.copy->offer().transfer == m.transfer; });
  taken(m.transfer, m.error.empty());
}

void Agent::taken(std::uint64_t transfer, bool safe) {
  const auto node = offered_.extract(transfer);
  if (!node) return;
  const auto& [made, run] = node.mapped();
  if (safe) cache_->replicated(made);
  if (!safe && share_)
    hypertune::detail::run_apart(*disk_, [folder = offered_folder(share_->area, transfer)] {
      hypertune::detail::remove_tree(folder);  // else it is removed with the area
    });
  --run->copies;
  if (run->held && run->copies < copies_ahead) executor_.perform(*std::exchange(run->held, std::nullopt));
  tell_end(run);
}

void Agent::complain(const CheckpointInfo& made, const std::string& why) {
  channel_->send(SaveFailed{made.trial, made.steps, "it could not be sent: " + why});
}

}  // namespace hypertune::inline v0::remote::detail
