#include <hypertune/train/connect.hpp>
#include <hypertune/train/elastic_state.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <utility>

namespace hypertune::inline v0 {
namespace {

constexpr std::uint64_t max_bytes = std::uint64_t{1} << 40U;  // of one kept object; a larger size is an error

void append(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

ElasticState::ElasticState(Context& context, ElasticOptions options)
    : context_(context), group_(context.group()), options_(std::move(options)), place_(group_.place()) {
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

ElasticState::~ElasticState() {
  group_.on_halt({});
  if (offered_) context_.set_final_save(0, {});
}

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

// --- Commits

void ElasticState::snapshot(bool at_end) {
  // Written to a second buffer, so that an exception of save() leaves the last commit intact.
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
  part_ = here_;
  at_end_ = at_end;
  // Rank 0 may be lost before it has reported this step.
  if (checkpoints_ && at_end) {
    offered_ = true;
    context_.set_final_save(steps_, [this](CheckpointWriter& out) { write_checkpoint(out); });
  }
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
  group_.note_commit();
  if (change) throw Leave{};
}

// --- Generations

void ElasticState::leave() {
  group_.on_halt({});
  joined_ = false;
}

// The generation is broken. The driver ends the ranks that are late.
void ElasticState::give_up(const GroupError& why) {
  if (why.kind() == GroupError::Kind::late && !why.ranks().empty()) group_.report_late(why.ranks());
  communicator_->abort(why);
  leave();
  if (synced_) restore();
}

// Returns true if this worker's state was received from another one, or loaded.
bool ElasticState::form() {
  for (;;) {
    const GroupPlace before = place_;
    place_ = group_.join(false, options_.communicator.timeout);
    try {
      {
        const Group::Waiting waits(group_);
        communicator_ = options_.connect(place_, group_, options_.communicator);
      }
      joined_ = true;
      group_.waits_while(communicator_->busy_function());
      group_.on_halt([communicator = *communicator_](const GroupError& why) { communicator.abort(why); });
      if (gradients_) gradients_->rebind(*communicator_);
      asked_ = false;
      const bool given = sync();
      if (++generations_ > 1)
        for (const auto& changed : changed_) changed(before, place_);
      return given;
    } catch (const GroupError& why) {
      if (why.kind() == GroupError::Kind::late && !why.ranks().empty()) group_.report_late(why.ranks());
      leave();
      if (why.kind() == GroupError::Kind::device) throw;
    }
  }
}

// Distributes the newest commit of any rank; at the beginning that of rank 0.
bool ElasticState::sync() {
  if (!synced_ && commits_ == 0) snapshot(false);
  if (size() == 1) {
    synced_ = true;
    return std::exchange(loaded_, false);
  }
  constexpr std::size_t words = 6;
  const std::array<std::int64_t, words> mine = {synced_, commits_, static_cast<std::int64_t>(saved_.size()),
                                                steps_,  at_end_,  part_};
  std::vector<std::int64_t> all(words * static_cast<std::size_t>(size()));
  communicator_->all_gather(std::span<const std::int64_t>(mine), std::span<std::int64_t>(all));
  const auto of = [&](int rank) { return std::span(all).subspan(words * static_cast<std::size_t>(rank), words); };
  int source = 0;
  for (int rank = 1; rank < size(); ++rank) {
    const auto [synced, commits] = std::pair(of(rank)[0], of(rank)[1]);
    const auto [best, most] = std::pair(of(source)[0], of(source)[1]);
    if (synced > best || (synced == best && synced != 0 && commits > most)) source = rank;
  }
  // A rank that has that commit already keeps its state: it may be ahead of it, with work since the commit.
  bool everyone = true;
  for (int rank = 0; rank < size(); ++rank) everyone = everyone && (of(rank)[0] != 0 && of(rank)[1] == of(source)[1]);
  const bool have = rank() == source || (synced_ && commits_ == of(source)[1]);
  if (!everyone) {
    const std::int64_t size_of_it = of(source)[2];
    if (size_of_it < 0 || static_cast<std::uint64_t>(size_of_it) > max_bytes)
      fail(Errc::usage, "the state of {} bytes is out of range (0 to {})", size_of_it, max_bytes);
    std::vector<std::byte>& buffer = have ? saved_ : spare_;
    buffer.resize(static_cast<std::size_t>(size_of_it));
    communicator_->broadcast(std::span(reinterpret_cast<std::uint8_t*>(buffer.data()), buffer.size()), source);
    if (!have) {
      saved_.swap(spare_);
      commits_ = of(source)[1];
      steps_ = static_cast<int>(of(source)[3]);
      at_end_ = of(source)[4] != 0;
      part_ = static_cast<int>(of(source)[5]);
      if (part_ >= here_) restore();  // otherwise this worker still has to reach that part
    }
  }
  synced_ = true;
  return std::exchange(loaded_, false) || !have;
}

int ElasticState::number_of(const std::source_location& where) {
  const auto same = [&](const std::source_location& other) {
    return other.line() == where.line() && other.column() == where.column() &&
           std::strcmp(other.file_name(), where.file_name()) == 0;
  };
  const auto found = std::find_if(parts_.begin(), parts_.end(), same);
  if (found == parts_.end()) parts_.push_back(where);
  return static_cast<int>(std::find_if(parts_.begin(), parts_.end(), same) - parts_.begin());
}

// Whether this part is one that the others have passed, or have just finished.
bool ElasticState::skips() {
  if (!ahead_) return false;
  if (*ahead_ == here_) {
    ahead_.reset();
    if (!skipped_.empty()) restore();  // undo what the trial did between the parts: the commit includes it
    skipped_.clear();
    return at_end_;
  }
  if (!skipped_.insert(here_).second)
    fail(Errc::usage,
         "a worker that goes on where others are does not come to the run() in which they are: all that decides about "
         "which run() is called next is to be kept");
  if (*ahead_ > here_) context_.go_on_from(0);  // the others have already reported these steps
  return true;
}

// --- Checkpoints

namespace {

constexpr std::string_view magic = "hypertune elastic state 1\n";
constexpr const char* file_name = "elastic_state";
void write(CheckpointWriter& out, const std::string& text) {
  std::ofstream file(out.file(file_name), std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) fail(Errc::io, "'{}' cannot be written", out.file(file_name).string());
}

struct Head {  // in this machine's byte order, like everything kept
  std::int64_t commits = 0, steps = 0, part = 0, at_end = 0, size = 0;
};

}  // namespace

std::string ElasticState::encoded() const {
  const Head head{commits_, steps_, part_, at_end_, static_cast<std::int64_t>(saved_.size())};
  std::string text(magic);
  text.append(reinterpret_cast<const char*>(&head), sizeof head);
  text.append(reinterpret_cast<const char*>(saved_.data()), saved_.size());
  return text;
}

void ElasticState::load(const Checkpoint& checkpoint) {
  if (!checkpoint.has(file_name))
    fail(Errc::usage, "checkpoint {} is none of an ElasticState: it has no file '{}'", checkpoint.info().name,
         file_name);
  std::ifstream in(checkpoint.file(file_name), std::ios::binary);
  std::string begin(magic.size(), '\0');
  Head head;
  in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  in.read(reinterpret_cast<char*>(&head), sizeof head);
  const auto all = std::filesystem::file_size(checkpoint.file(file_name));
  const bool sound = in && begin == magic && head.commits > 0 && head.steps >= 0 && head.part >= 0 &&
                     head.steps <= std::numeric_limits<int>::max() && head.part <= std::numeric_limits<int>::max() &&
                     head.size >= 0 && all == magic.size() + sizeof head + static_cast<std::uint64_t>(head.size);
  if (!sound) fail(Errc::corrupt, "'{}' of checkpoint {} is damaged", file_name, checkpoint.info().name);
  saved_.resize(static_cast<std::size_t>(head.size));
  in.read(reinterpret_cast<char*>(saved_.data()), static_cast<std::streamsize>(saved_.size()));
  if (!in) fail(Errc::io, "'{}' of checkpoint {} cannot be read", file_name, checkpoint.info().name);
  commits_ = head.commits;
  steps_ = static_cast<int>(head.steps);
  part_ = static_cast<int>(head.part);
  at_end_ = head.at_end != 0;
  loaded_ = true;
  try {
    restore();
  } catch (const Error& error) {
    fail(
        Errc::usage,
        "'{}' is of a training that keeps other things than this one ({}): keep the same in the same order, or begin a "
        "new experiment",
        checkpoint.file(file_name).string(), error.what());
  }
}

void ElasticState::checkpoints() {
  if (joined_) fail(Errc::usage, "checkpoints() of an ElasticState is to be called before its first run()");
  checkpoints_ = true;
  context_.checkpoints(
      [this](CheckpointWriter& out) {
        if (commits_ == 0) snapshot(false);
        write_checkpoint(out);
      },
      [this](const Checkpoint& in) { load(in); });
}

void ElasticState::write_checkpoint(CheckpointWriter& out) const { write(out, encoded()); }

// With a copy of the data, as this object will be gone when the checkpoint is written.
void ElasticState::offer_last_commit() {
  if (!checkpoints_ || !synced_ || commits_ == 0) return;
  offered_ = false;
  const auto text = std::make_shared<const std::string>(encoded());
  context_.set_final_save(steps_, [text](CheckpointWriter& out) { write(out, *text); });
}

// --- Parts

void ElasticState::run(const std::function<void()>& part, const std::source_location& where) {
  if (running_) fail(Errc::usage, "run() within run()");
  struct Running {
    bool& running;
    explicit Running(bool& r) : running(r) { running = true; }
    ~Running() { running = false; }
  } const running(running_);
  here_ = number_of(where);
  for (;;) {
    try {
      if (!joined_ && form()) {
        ahead_ = part_;
        skipped_.clear();
      }
      if (skips()) return;
      if (at_end_) snapshot(false);  // includes what the trial did since the part before
      part();
      const bool change = agree();
      snapshot(true);
      group_.note_commit();
      if (change) leave();
      return;
    } catch (const Leave&) { leave(); } catch (const GroupError& why) {
      if (!joined_) {  // from join() or connecting: there is no group to continue with
        offer_last_commit();
        throw;
      }
      // The other workers continue, and another process replaces this one. The state is not restored: that might use
      // the device and wait for it.
      if (why.kind() == GroupError::Kind::device) {
        communicator_->abort({GroupError::Kind::lost, why.what(), {rank()}});
        leave();
        offer_last_commit();
        throw;
      }
      give_up(why);
    }
  }
}

}  // namespace hypertune::inline v0
