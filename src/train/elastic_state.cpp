#include <hypertune/train/connect.hpp>
#include <hypertune/train/elastic_state.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace hypertune::inline v0 {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40U;  // of one thing that is kept: more makes no sense

void append(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

ElasticState::ElasticState(Context& context, ElasticOptions options)
    : context_(context), group_(context.group()), options_(std::move(options)) {
  if (!options_.connect)
    options_.connect = [](const GroupPlace& place, Rendezvous& rendezvous, const CommunicatorOptions& how) {
      return hypertune::connect(place, rendezvous, how);
    };
  options_.gradients.signal = [this] {
    asked_ = true;
    return group_.change_pending();
  };
  Group alone;
  communicator_ = hypertune::connect({}, alone, {});
}

ElasticState::~ElasticState() { group_.on_halt({}); }

ElasticState& ElasticState::keep_bytes(std::span<std::byte> bytes) {
  if (joined_) fail(Errc::usage, "what an ElasticState keeps is to be said before its first run()");
  kept_.push_back({.bytes = bytes, .save = {}, .load = {}});
  return *this;
}

ElasticState& ElasticState::keep(std::function<std::string()> save, std::function<void(std::string_view)> load) {
  keep_bytes({});
  kept_.back().save = std::move(save);
  kept_.back().load = std::move(load);
  return *this;
}

DataParallel& ElasticState::gradients() {
  if (!gradients_) gradients_ = std::make_unique<DataParallel>(*communicator_, options_.gradients);
  return *gradients_;
}

// ---- Commits

void ElasticState::snapshot(bool at_end) {
  // Written beside the last one, so that an exception of save() leaves that whole.
  spare_.clear();
  for (const Kept& kept : kept_) {
    if (!kept.save) {
      append(spare_, kept.bytes);
      continue;
    }
    const std::string bytes = kept.save();
    const std::uint64_t size = bytes.size();
    append(spare_, std::as_bytes(std::span(&size, 1)));
    append(spare_, std::as_bytes(std::span(bytes)));
  }
  saved_.swap(spare_);
  ++commits_;
  steps_ = context_.steps();
  at_end_ = at_end;
}

void ElasticState::restore() {
  std::size_t at = 0;
  const auto take = [&](std::size_t size) {
    if (size > saved_.size() - at)
      fail(Errc::usage, "the workers do not keep the same state: {} bytes are too few", saved_.size());
    const auto bytes = std::span(saved_).subspan(at, size);
    at += size;
    return bytes;
  };
  for (const Kept& kept : kept_) {
    if (!kept.load) {
      const auto bytes = take(kept.bytes.size());
      std::copy(bytes.begin(), bytes.end(), kept.bytes.begin());
      continue;
    }
    std::uint64_t size = 0;
    const auto length = take(sizeof size);
    std::memcpy(&size, length.data(), sizeof size);
    const auto bytes = take(size);
    kept.load({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  if (at != saved_.size())
    fail(Errc::usage, "the workers do not keep the same state: {} of {} bytes are used", at, saved_.size());
  context_.go_on_from(steps_);
}

bool ElasticState::agree() {
  if (size() == 1) return group_.change_pending();
  if (std::exchange(asked_, false)) return gradients_->signalled();
  return communicator_->all_reduce(std::int32_t{group_.change_pending()}, Reduction::max) != 0;
}

void ElasticState::commit() {
  if (!running_) fail(Errc::usage, "commit() outside of run()");
  const bool change = agree();
  snapshot(false);
  if (change) throw Leave{};
}

// ---- Generations

void ElasticState::leave() {
  group_.on_halt({});
  joined_ = false;
}

// The generation is broken: whoever is late is ended by the driver.
void ElasticState::give_up(const GroupError& why) {
  if (why.kind() == GroupError::Kind::late && !why.ranks().empty()) group_.report_late(why.ranks());
  communicator_->abort(why);
  leave();
  if (synced_) restore();
}

// True: the state is that of the end of a part which this worker has not done itself.
bool ElasticState::form() {
  for (;;) {
    const GroupPlace before = place_;
    place_ = group_.join();
    try {
      communicator_ = options_.connect(place_, group_, options_.communicator);
      joined_ = true;
      group_.on_halt([communicator = *communicator_](const GroupError& why) mutable { communicator.abort(why); });
      if (gradients_) gradients_->rebind(*communicator_);
      asked_ = false;
      const bool over = sync();
      if (++generations_ > 1)
        for (const auto& changed : changed_) changed(before, place_);
      return over;
    } catch (const GroupError& why) {
      if (why.kind() == GroupError::Kind::late && !why.ranks().empty()) group_.report_late(why.ranks());
      leave();
    }
  }
}

// All get the newest commit: of whoever has one; at the beginning, rank 0's.
bool ElasticState::sync() {
  if (!synced_ && commits_ == 0) snapshot(false);
  if (size() == 1) {
    synced_ = true;
    return false;
  }
  constexpr std::size_t words = 5;
  const std::array<std::int64_t, words> mine = {synced_, commits_, static_cast<std::int64_t>(saved_.size()), steps_,
                                                at_end_};
  std::vector<std::int64_t> all(words * static_cast<std::size_t>(size()));
  communicator_->all_gather(std::span<const std::int64_t>(mine), std::span<std::int64_t>(all));
  const auto of = [&](int rank) { return std::span(all).subspan(words * static_cast<std::size_t>(rank), words); };
  int source = 0;
  for (int rank = 1; rank < size(); ++rank) {
    const auto [synced, commits] = std::pair(of(rank)[0], of(rank)[1]);
    const auto [best, most] = std::pair(of(source)[0], of(source)[1]);
    if (synced > best || (synced == best && synced != 0 && commits > most)) source = rank;
  }
  // Whoever has it already goes on: it may be beyond it, with what it does before its next commit.
  bool everyone = true;
  for (int rank = 0; rank < size(); ++rank) everyone = everyone && (of(rank)[0] != 0 && of(rank)[1] == of(source)[1]);
  const bool have = rank() == source || (synced_ && commits_ == of(source)[1]);
  if (!everyone) {
    const std::int64_t size_of_it = of(source)[2];
    if (size_of_it < 0 || static_cast<std::uint64_t>(size_of_it) > most_bytes)
      fail(Errc::usage, "the state of {} bytes makes no sense", size_of_it);
    std::vector<std::byte>& buffer = have ? saved_ : spare_;
    buffer.resize(static_cast<std::size_t>(size_of_it));
    communicator_->broadcast(std::span(reinterpret_cast<std::uint8_t*>(buffer.data()), buffer.size()), source);
    if (!have) {
      saved_.swap(spare_);
      commits_ = of(source)[1];
      steps_ = static_cast<int>(of(source)[3]);
      at_end_ = of(source)[4] != 0;
      restore();
    }
  }
  synced_ = true;
  return !have && at_end_;
}

void ElasticState::run(const std::function<void()>& part) {
  if (running_) fail(Errc::usage, "run() within run()");
  struct Running {
    bool& running;
    explicit Running(bool& r) : running(r) { running = true; }
    ~Running() { running = false; }
  } const running(running_);
  for (;;) {
    try {
      if (!joined_ && form()) return;
      if (at_end_) snapshot(false);  // with what the trial did since the part before
      part();
      const bool change = agree();
      snapshot(true);
      if (change) leave();
      return;
    } catch (const Leave&) { leave(); } catch (const GroupError& why) {
      if (!joined_) throw;  // of join(): there is nothing to go on with
      give_up(why);
    }
  }
}

}  // namespace hypertune::inline v0
