#include "group.hpp"

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/signal_block.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace hypertune::inline v0::detail {
namespace {

/// Slots of Gloo: a send in one slot matches a receive in the same. The slots of collectives are hashes that differ
/// from these.
constexpr std::uint64_t message_slot = 0x68797065'72740001U, unused_slot = message_slot + 1,
                        probe_slot = message_slot + 2;

/// How long to wait for answers, and until the last message was read, by ranks whose listening threads are idle.
std::chrono::milliseconds patience(double timeout) {
  return std::chrono::milliseconds(static_cast<int>(std::clamp(timeout / 2, 0.1, 2.0) * 1000));
}
/// How long to wait until the last message was read by a rank that is named in the error. It probably reads nothing.
constexpr std::chrono::milliseconds named_patience{150};

}  // namespace

GlooGroup::GlooGroup(GlooLinks links, int rank, int size, double timeout)
    : links_(std::move(links)), rank_(rank), size_(size), timeout_(timeout), peers_(index(size)) {
  probe_ = buffer(nullptr, 0);
  const SignalBlock for_new_threads;
  listener_ = std::thread([this] { listen(); });
  watcher_ = std::thread([this] { watch(); });
}

GlooGroup::~GlooGroup() {
  links_.busy_loop->start();  // never stopped
  {
    const std::lock_guard guard(mutex_);
    leaving_ = true;
    changed_.notify_all();
  }
  watcher_.join();
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
    if (!inboxes_.empty()) inboxes_.back().buffer->abortWaitRecv();
  }
  listener_.join();
}

void GlooGroup::fail_with(const GroupError& why) {
  const std::lock_guard guard(mutex_);
  fail_locked(why);
}

void GlooGroup::fail_locked(const GroupError& why) {
  if (failure_) return;
  failure_ = own_copy(why);
  changed_.notify_all();
  for (GlooBuffer* buffer : in_use_) {
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
}

// --- The collective in progress

void GlooGroup::begin(const CollectiveShape& shape) {
  const std::lock_guard guard(mutex_);
  if (!failure_) {
    std::vector<int> gone;
    for (int rank = 0; rank < size_; ++rank)
      if (peers_[index(rank)].left.value_or(sequence_ + 1) <= sequence_) gone.push_back(rank);
    if (!gone.empty())
      fail_locked({GroupError::Kind::lost, fmt::format("{} left the group", describe_ranks(gone)), gone});
  }
  if (failure_) throw own_copy(*failure_);
  ++sequence_;
  shape_ = shape;
  begun_ = Clock::now();
  progress_ = 0;
}

void GlooGroup::end(bool done) {
  const std::lock_guard guard(mutex_);
  in_use_.clear();
  if (done) done_ = sequence_;
}

void GlooGroup::add(GlooBuffer& buffer) {
  {
    const std::lock_guard guard(mutex_);
    if (!failure_) return in_use_.push_back(&buffer);
  }
  give_up("");
}

void GlooGroup::give_up(const std::string& error) {
  Lock lock(mutex_);
  // A connection has closed. The listening thread finds out whose, and whether its rank gave a reason before.
  const auto limit = std::chrono::seconds(3);  // more than sending the last messages takes
  if (!changed_.wait_for(lock, limit, [&] { return failure_.has_value(); }))
    fail_locked({GroupError::Kind::failed, fmt::format("Gloo failed: {}", error)});
  // Data that this rank still has to send precedes its last message in the queues: keep the memory until that is sent.
  changed_.wait_for(lock, limit, [&] { return others_informed_; });
  throw own_copy(*failure_);
}

// --- The listening thread

void GlooGroup::open_inbox() {
  // Gloo reports a closed connection to a buffer only if the buffer waits for a message from there. So the inbox also
  // waits in a slot in which nobody sends (unused_slot). A new buffer forgets the connections of ranks that have left.
  // The earlier buffers are kept, as a message may still arrive in them.
  std::vector<int> from;
  {
    const std::lock_guard guard(mutex_);
    for (int rank = 0; rank < size_; ++rank)
      if (reachable(rank)) from.push_back(rank);
    MessageBuffer& inbox = inboxes_.emplace_back();
    inbox.buffer = buffer(&inbox.message, sizeof inbox.message);
    if (stopping_) inbox.buffer->abortWaitRecv();
  }
  for (const int rank : from) inboxes_.back().buffer->recv(rank, unused_slot, 0, 0);
  receive_next();
}

void GlooGroup::receive_next() {
  std::vector<int> from;
  {
    const std::lock_guard guard(mutex_);
    for (int rank = 0; rank < size_; ++rank)
      if (reachable(rank)) from.push_back(rank);
  }
  if (!from.empty()) inboxes_.back().buffer->recv(from, message_slot, 0, sizeof(GlooMessage));
}

void GlooGroup::listen() {
  bool opened = false;
  std::vector<int> closed;
  for (;;) {
    int from = -1;
    bool received = false;
    try {
      if (!opened) {
        open_inbox();
        opened = true;
      }
      received = inboxes_.back().buffer->waitRecv(&from, gloo_unlimited);
      closed.clear();
      if (received && from >= 0 && from < size_) {
        const GlooMessage message = inboxes_.back().message;
        handle(message, from);
        if (message.kind == GlooMessage::Kind::left)
          opened = false;
        else
          receive_next();
      }
    } catch (const std::exception& error) {
      // A message that arrived before the connection closed tells why it was closed. So a closed connection is reported
      // only if the inbox is found empty after the closing was detected.
      if (closed.empty()) {
        closed = find_closed();
        if (opened && !closed.empty()) continue;
      }
      if (!name_lost(closed, error.what())) return;
      // The others' last messages are still read, so that these ranks need not wait.
      opened = false;
      closed.clear();
    }
    const std::lock_guard guard(mutex_);
    if (stopping_) return;
  }
}

void GlooGroup::handle(const GlooMessage& message, int from) {
  const std::lock_guard guard(mutex_);
  switch (message.kind) {
    case GlooMessage::Kind::query: {
      GlooMessage answer;
      answer.kind = GlooMessage::Kind::answer;
      answer.round = message.round;
      answer.sequence = sequence_;
      answer.progress = progress_;
      answer.shape = shape_;
      send(answer, from);
      return;
    }
    case GlooMessage::Kind::answer:
      peers_[index(from)].answer = message;
      changed_.notify_all();
      return;
    case GlooMessage::Kind::left:
      peers_[index(from)].left = message.sequence;
      // That rank has sent and received all data of the collectives up to then, so those can complete.
      if (sequence_ > message.sequence && done_ < sequence_)
        fail_locked({GroupError::Kind::lost, fmt::format("rank {} left the group", from), {from}});
      return;
    case GlooMessage::Kind::failed:
      if (!failure_) reported_by_ = from;
      fail_locked(message.get_error(size_));
      return;
  }
}

std::vector<int> GlooGroup::find_closed() {
  std::vector<int> closed;
  const std::lock_guard guard(mutex_);
  for (int rank = 0; rank < size_; ++rank) {
    if (!reachable(rank)) continue;
    try {
      probe_->recv(rank, probe_slot, 0, 0);
    } catch (const std::exception&) { closed.push_back(rank); }
  }
  return closed;
}

bool GlooGroup::name_lost(const std::vector<int>& lost, const std::string& error) {
  const std::lock_guard guard(mutex_);
  for (const int rank : lost) peers_[index(rank)].lost = true;
  if (lost.empty())
    fail_locked({GroupError::Kind::failed, fmt::format("Gloo failed: {}", error)});
  else
    fail_locked({GroupError::Kind::lost,
                 fmt::format("{} {} lost: {} connection closed without a word, as when a process is killed",
                             describe_ranks(lost), lost.size() == 1 ? "is" : "are", lost.size() == 1 ? "its" : "their"),
                 lost});
  return !lost.empty();
}

// --- The watching thread

void GlooGroup::watch() {
  Lock lock(mutex_);
  const auto limit =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(timeout_, 3e7)));
  auto wake = Clock::now() + limit;
  for (;;) {
    changed_.wait_until(lock, wake, [&] { return failure_ || leaving_; });
    if (failure_ || leaving_) break;
    // while idle: a collective that begins now has this limit
    wake = (done_ < sequence_ ? begun_ : Clock::now()) + limit;
    if (wake > Clock::now()) continue;
    ask(lock);
    wake = Clock::now() + limit;
  }
  GlooMessage last_message;
  last_message.kind = failure_ ? GlooMessage::Kind::failed : GlooMessage::Kind::left;
  last_message.sequence = done_;
  if (failure_) last_message.set_error(*failure_);
  send_last_message(lock, last_message);
  others_informed_ = true;
  changed_.notify_all();
  lock.unlock();
  // Data that was not sent stays in the queues of connections, which would keep Gloo's thread busy.
  links_.close();
}

void GlooGroup::ask(Lock& lock) {
  GlooMessage question;
  question.kind = GlooMessage::Kind::query;
  question.round = ++round_;
  question.sequence = sequence_;
  question.shape = shape_;
  for (int rank = 0; rank < size_; ++rank)
    if (reachable(rank)) send(question, rank);
  const auto answered = [&](int rank) { return !reachable(rank) || peers_[index(rank)].answer.round == round_; };
  const auto settled = [&] {
    if (failure_ || leaving_ || done_ == question.sequence) return true;
    for (int rank = 0; rank < size_; ++rank)
      if (!answered(rank)) return false;
    return true;
  };
  changed_.wait_until(lock, Clock::now() + patience(timeout_), settled);
  if (!failure_ && !leaving_ && done_ < question.sequence) judge(question);
}

void GlooGroup::judge(const GlooMessage& question) {
  std::vector<int> late;
  std::uint64_t progress = progress_;
  for (int rank = 0; rank < size_; ++rank) {
    if (!reachable(rank)) continue;
    const GlooMessage& answer = peers_[index(rank)].answer;
    if (answer.round != round_ || answer.sequence < question.sequence) {
      late.push_back(rank);
    } else if (answer.sequence == question.sequence && answer.shape != question.shape) {
      return fail_locked({GroupError::Kind::failed,
                          fmt::format("rank {} asks for {}, rank {} for {}: all ranks must ask for the same, in the "
                                      "same order",
                                      rank, describe(answer.shape), rank_, describe(question.shape)),
                          {rank}});
    } else {
      progress += answer.progress;
    }
  }
  if (!late.empty()) return fail_locked({GroupError::Kind::late, late_text(late, timeout_, question.shape), late});
  if (seen_sequence_ == question.sequence && seen_progress_ == progress)
    return fail_locked({GroupError::Kind::failed,
                        fmt::format("{} has not got on for {} s, though all ranks have come to it: look at the network "
                                    "between them",
                                    describe(question.shape), timeout_)});
  seen_sequence_ = question.sequence;
  seen_progress_ = progress;
  begun_ = Clock::now();
}

void GlooGroup::send_last_message(Lock& lock, GlooMessage message) {
  const auto named = [&](int rank) {
    return failure_ && std::find(failure_->ranks().begin(), failure_->ranks().end(), rank) != failure_->ranks().end();
  };
  std::vector<MessageBuffer*> read, may_read;
  for (int rank = 0; rank < size_; ++rank) {
    if (!reachable(rank) || rank == reported_by_) continue;
    MessageBuffer* const sent = send(message, rank);
    if (sent != nullptr) (named(rank) ? may_read : read).push_back(sent);
  }
  lock.unlock();
  const auto await_sent = [](const std::vector<MessageBuffer*>& buffers, std::chrono::milliseconds limit) {
    const auto deadline = Clock::now() + limit;
    for (MessageBuffer* sent : buffers) {
      const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      if (rest.count() <= 0) return;
      try {
        sent->buffer->waitSend(rest);
      } catch (const std::exception&) {}  // that rank has left, too, or does not read
    }
  };
  // A rank that receives no message before the connection closes takes this rank for lost.
  await_sent(read, patience(timeout_));
  await_sent(may_read, named_patience);
  lock.lock();
}

GlooGroup::MessageBuffer* GlooGroup::send(const GlooMessage& message, int to) {
  MessageBuffer& sent = sent_.emplace_back();
  sent.message = message;
  sent.buffer = buffer(&sent.message, sizeof sent.message);
  try {
    sent.buffer->send(to, message_slot, 0, sizeof sent.message);
    return &sent;
  } catch (const std::exception&) { return nullptr; }  // its connection is closed; the listening thread detects that
}

// --- An operation

GlooOperation::GlooOperation(GlooGroup& group, const CollectiveShape& shape) : group_(group) {
  group_.begin(shape);
  // Different operations must not share a slot: Gloo ends the process if more data arrives than was asked for.
  std::uint64_t hash = group_.sequence_;
  for (const std::uint64_t part : {shape.count, static_cast<std::uint64_t>(shape.root),
                                   std::uint64_t{shape.kind} << 16U | static_cast<std::uint64_t>(shape.type) << 8U |
                                       static_cast<std::uint64_t>(shape.reduction)}) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29U;
  }
  slot_ = hash;
}

GlooOperation::~GlooOperation() { group_.end(done_); }

GlooBuffer& GlooOperation::memory(void* data, std::size_t bytes) {
  buffers_.push_back(group_.buffer(data, bytes));
  group_.add(*buffers_.back());
  return *buffers_.back();
}

void GlooOperation::send(GlooBuffer& buffer, int to, std::size_t offset, std::size_t bytes, unsigned channel) {
  try {
    buffer.send(to, slot_ + channel, offset, bytes);
  } catch (const std::exception& error) { group_.give_up(error.what()); }
}

void GlooOperation::receive(GlooBuffer& buffer, int from, std::size_t offset, std::size_t bytes, unsigned channel) {
  try {
    buffer.recv(from, slot_ + channel, offset, bytes);
  } catch (const std::exception& error) { group_.give_up(error.what()); }
}

void GlooOperation::wait_sent(GlooBuffer& buffer, int count) {
  try {
    for (; count > 0; --count) {
      if (!buffer.waitSend(nullptr, gloo_unlimited)) group_.give_up("interrupted");
      group_.progress_.fetch_add(1, std::memory_order_relaxed);
    }
  } catch (const GroupError&) { throw; } catch (const std::exception& error) {
    group_.give_up(error.what());
  }
}

void GlooOperation::wait_received(GlooBuffer& buffer, int count) {
  try {
    for (; count > 0; --count) {
      if (!buffer.waitRecv(nullptr, gloo_unlimited)) group_.give_up("interrupted");
      group_.progress_.fetch_add(1, std::memory_order_relaxed);
    }
  } catch (const GroupError&) { throw; } catch (const std::exception& error) {
    group_.give_up(error.what());
  }
}

}  // namespace hypertune::inline v0::detail
