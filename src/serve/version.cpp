#include "version.hpp"

#include <hypertune/detail/as_duration.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/say.hpp>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace hypertune::inline v0::serving {

namespace asio = boost::asio;
using hypertune::detail::say;
using hypertune::detail::steady_seconds;

namespace {

constexpr int most_failed_starts = 3;
constexpr const char* none_starts = "no replica of the model can be started at present";

/// Where the rows from number `from` on begin in the data of a tensor.
std::size_t offset_of_row(const Tensor& tensor, std::size_t from, std::size_t rows) {
  if (tensor.datatype != Datatype::bytes) return rows == 0 ? 0 : tensor.data.size() / rows * from;
  std::size_t left = rows == 0 ? 0 : tensor.count() / rows * from, at = 0;
  for (; left > 0; --left) {
    std::uint32_t size = 0;
    std::memcpy(&size, tensor.data.data() + at, sizeof size);
    at += sizeof size + size;
  }
  return at;
}

Tensor rows_of(const Tensor& tensor, std::size_t from, std::size_t count, std::size_t all) {
  Tensor part{tensor.name, tensor.datatype, tensor.shape, {}};
  part.shape.front() = static_cast<std::int64_t>(count);
  const auto begin = offset_of_row(tensor, from, all);
  part.data = tensor.data.substr(begin, offset_of_row(tensor, from + count, all) - begin);
  return part;
}

/// The extents behind the first one, of all inputs: requests of one batch have the same.
std::string shape_key(const std::vector<Tensor>& inputs) {
  std::string key;
  for (const auto& input : inputs) {
    for (std::size_t i = 1; i < input.shape.size(); ++i) key += std::to_string(input.shape[i]) + ",";
    key += ';';
  }
  return key;
}

}  // namespace

ModelVersion::ModelVersion(Parts parts, std::shared_ptr<const ModelFiles> files, std::function<void()> changed)
    : parts_(parts), files_(std::move(files)), changed_(std::move(changed)), wake_(parts.io), restart_(parts.io) {}

ModelVersion::~ModelVersion() {
  for (auto& member : members_) member.replica->end();
}

int ModelVersion::ready_replicas() const {
  return static_cast<int>(std::count_if(members_.begin(), members_.end(), [](const Member& member) {
    return member.replica->state() == Replica::State::idle || member.replica->state() == Replica::State::busy;
  }));
}

void ModelVersion::scale(int replicas) {
  wanted_ = replicas;
  if (state_ == State::failed || (state_ == State::retired && all_.empty())) return;
  while (!restarting_ && static_cast<int>(members_.size()) < wanted_ && state_ != State::failed) start_replica();
  // Busy ones end when they have answered.
  for (auto at = members_.end(); at != members_.begin() && static_cast<int>(members_.size()) > wanted_;) {
    --at;
    if (!at->batch.empty()) continue;
    at->replica->end();
    at = members_.erase(at);
  }
}

void ModelVersion::start_replica() {
  int number = 0;
  while (
      std::any_of(members_.begin(), members_.end(), [&](const auto& one) { return one.replica->number() == number; }))
    ++number;
  const auto weak = weak_from_this();
  const auto with = [weak](auto f) {
    if (const auto self = weak.lock()) f(*self);
  };
  ReplicaEvents events{[with](Replica&, std::optional<Signature> signature) {
                         with([&](ModelVersion& self) { self.ready(std::move(signature)); });
                       },
                       [with](Replica& replica, std::string_view bytes, std::optional<std::size_t> json) {
                         with([&](ModelVersion& self) { self.answered(replica, bytes, json); });
                       },
                       [with](Replica& replica, const std::string& why) {
                         with([&](ModelVersion& self) { self.ended(replica, why); });
                       }};
  try {
    auto replica =
        std::make_shared<Replica>(parts_.io, parts_.starter.start(*files_, number), number, std::move(events));
    replica->begin(parts_.options.replicas.start_timeout);
    members_.push_back({std::move(replica), {}, 0, 0});
  } catch (const Error& error) { fail_version(error.what()); }
}

void ModelVersion::ready(std::optional<Signature> signature) {
  failed_starts_ = 0;
  if (state_ == State::starting) {
    if (!signature_) signature_ = std::move(signature);
    if (!batcher_) batcher_.emplace(parts_.options.batch, signature_ && signature_->batches());
    if (ready_replicas() >= wanted_) {
      state_ = State::ready;
      asio::post(parts_.io, changed_);
    }
  }
  pump();
}

void ModelVersion::add(const std::shared_ptr<Pending>& pending) {
  if (state_ != State::ready) return pending->answer(503, "the model is not ready");
  if (out_of_order()) return pending->answer(503, none_starts);
  auto& request = pending->request;
  try {
    if (signature_) {
      match_inputs(request.inputs, *signature_);
      match_wanted(request, *signature_);
    }
    if (!parts_.starter.framed())
      for (const auto& input : request.inputs) require_utf8(input);
  } catch (const Error& error) { return pending->answer(400, error.what()); }
  const double now = steady_seconds();
  Waiting& place = pending->place;
  place.id = ++next_id_;
  place.arrived = now;
  place.expires = now + parts_.options.request_timeout;
  if (signature_ && signature_->batches()) {
    place.rows = static_cast<int>(std::min<std::int64_t>(request.inputs.front().rows(), 1 << 30));
    place.shape = shape_key(request.inputs);
  }
  if (request.priority && *request.priority > 0) place.priority = *request.priority;
  if (request.timeout && *request.timeout > 0) place.deadline = now + 1e-6 * static_cast<double>(*request.timeout);
  if (parts_.options.batch.latency_objective > 0)
    place.deadline = std::min(place.deadline, now + parts_.options.batch.latency_objective);
  pending->version = files_->version;
  switch (batcher_->add(place, now, free_at())) {
    case Batcher::Added::full:
      return pending->answer(429, fmt::format("{} requests are waiting already", batcher_->size()));
    case Batcher::Added::late: return pending->answer(503, "the request cannot be answered within its time");
    case Batcher::Added::waits: break;
  }
  all_.emplace(place.id, pending);
  pump();
}

// When a replica will be free, by what was measured.
double ModelVersion::free_at() const {
  double first = never;
  for (const auto& member : members_) {
    if (member.replica->state() == Replica::State::idle) return 0;
    if (member.replica->state() == Replica::State::busy)
      first = std::min(first, member.begun + batcher_->latency().mean(member.rows));
  }
  return first == never ? 0 : first;
}

void ModelVersion::pump() {
  if (!batcher_) return;
  for (;;) {
    const double now = steady_seconds();
    const auto idle = std::find_if(members_.begin(), members_.end(), [](const Member& member) {
      return member.replica->state() == Replica::State::idle;
    });
    Batcher::Step step = batcher_->next(now, idle != members_.end());
    for (const RequestId id : step.late)
      if (const auto at = all_.find(id); at != all_.end())
        finish(std::shared_ptr(at->second), 503, "the request could not be answered within its time");
    if (!step.batch.empty()) {
      begin(*idle, std::move(step.batch));
      continue;
    }
    if (step.wake < never) {
      wake_.expires_after(hypertune::detail::as_duration(std::clamp(step.wake - now, 0.0, 3600.0)));
      wake_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        if (error) return;
        if (const auto self = weak.lock()) self->pump();
      });
    }
    return;
  }
}

void ModelVersion::begin(Member& member, std::vector<Waiting> waiting) {
  member.batch.clear();
  member.rows = 0;
  for (const auto& one : waiting) {
    member.batch.push_back(all_.at(one.id));
    member.rows += one.rows;
  }
  member.begun = steady_seconds();
  parts_.metrics.batch_rows.add(member.rows);
  const double limit = parts_.options.replicas.hang_timeout;
  if (member.batch.size() == 1) return member.replica->send(member.batch.front()->request.inputs, limit);
  std::vector<Tensor> inputs = member.batch.front()->request.inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t j = 1; j < member.batch.size(); ++j) inputs[i].data += member.batch[j]->request.inputs[i].data;
    inputs[i].shape.front() = member.rows;
  }
  member.replica->send(inputs, limit);
}

std::list<ModelVersion::Member>::iterator ModelVersion::member_of(const Replica& replica) {
  return std::find_if(members_.begin(), members_.end(),
                      [&](const Member& member) { return member.replica.get() == &replica; });
}

void ModelVersion::answered(Replica& replica, std::string_view bytes, std::optional<std::size_t> json) {
  const auto member = member_of(replica);
  if (member == members_.end()) return;
  ModelAnswer answer;
  try {
    answer = decode_answer(bytes, json);
  } catch (const Error& error) {  // two lines in one, for example: which request the next one answers is unknown
    return replica.distrust(fmt::format("its answer is wrong: {}", error.what()));
  }
  if (answer.id && *answer.id != std::to_string(replica.asked()))
    return replica.distrust(fmt::format("it was asked {}, and has answered {}", replica.asked(), *answer.id));
  const Batch batch = std::exchange(member->batch, {});
  const int rows = member->rows;
  const double begun = member->begun, seconds = steady_seconds() - begun;
  try {
    if (answer.error.empty() && signature_) {
      match_outputs(answer.outputs, *signature_);
      if (signature_->batches() && answer.outputs.front().rows() != rows)
        fail(Errc::input, "it has {} rows for {}", answer.outputs.front().rows(), rows);
    }
  } catch (const Error& error) {
    answer.error = fmt::format("the model's answer is wrong: {}", error.what());
    answer.status = 500;
  }
  if (answer.error.empty()) {
    if (!batch.front()->probe) batcher_->measured(rows, seconds);
    parts_.metrics.batch_seconds.add(seconds);
    std::size_t from = 0;
    for (const auto& pending : batch) {
      const auto own = static_cast<std::size_t>(pending->place.rows);
      if (batch.size() == 1) {
        pending->outputs = std::move(answer.outputs);
      } else {
        for (const auto& output : answer.outputs)
          pending->outputs.push_back(rows_of(output, from, own, static_cast<std::size_t>(rows)));
      }
      from += own;
      finish(pending, 200, {});
    }
    // Runs after the coroutines that have been woken, each of which writes an answer.
    if (!batch.front()->probe)
      asio::post(parts_.io, [weak = weak_from_this(), rows, begun] {
        if (const auto self = weak.lock()) self->batcher_->delivered(rows, steady_seconds() - begun);
      });
  } else if (batch.size() == 1) {
    if (answer.status >= 500) tell_wrong(answer.error);
    finish(batch.front(), answer.status, std::move(answer.error));
  } else {  // one of them is the cause: each is asked alone
    for (const auto& pending : batch) {
      pending->place.alone = true;
      batcher_->put_back(pending->place);
    }
  }
  if (static_cast<int>(members_.size()) > wanted_) scale(wanted_);
  end_if_done();
  pump();
}

void ModelVersion::ended(Replica& replica, const std::string& why) {
  const auto member = member_of(replica);
  if (member == members_.end()) return;
  const Batch batch = std::exchange(member->batch, {});
  members_.erase(member);
  ++parts_.metrics.replicas_lost;
  say(fmt::format("hypertune: replica {} of version {} is lost: {}", replica.number(), files_->version, why));
  again(batch, !replica.unsent() && !parts_.starter.gone(), why);
  ++failed_starts_;
  if (state_ == State::starting && (failed_starts_ >= most_failed_starts || why.starts_with("it could not begin")))
    return fail_version(why);
  // A retired one goes on until its last request is answered.
  if (state_ == State::failed || (state_ == State::retired && all_.empty())) return end_if_done();
  restart_after(std::min(10.0, 0.05 * std::exp2(failed_starts_)));
  if (out_of_order()) {
    if (failed_starts_ == most_failed_starts)
      say(fmt::format("hypertune: version {} cannot answer: requests are refused until a replica can be started",
                      files_->version));
    fail_all(503, none_starts);
  }
  pump();
}

void ModelVersion::restart_after(double seconds) {
  if (std::exchange(restarting_, true)) return;
  restart_.expires_after(hypertune::detail::as_duration(seconds));
  restart_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (!self || error) return;
    self->restarting_ = false;
    self->scale(self->wanted_);
  });
}

// Inference changes nothing, so that a request may be asked again; but one that ends its replica each time is not. `guilty`: it
// may have done so.
void ModelVersion::again(Batch batch, bool guilty, const std::string& why) {
  for (const auto& pending : batch) {
    if (batch.size() == 1 && guilty) ++pending->failures;
    if (pending->failures >= 2) {
      finish(pending, 500, fmt::format("the model was lost twice while it answered this request: {}", why));
      continue;
    }
    pending->place.alone = true;
    pending->place.expires = steady_seconds() + parts_.options.request_timeout;  // it did not wait meanwhile
    batcher_->put_back(pending->place);
  }
}

void ModelVersion::finish(const std::shared_ptr<Pending>& pending, int status, std::string why) {
  all_.erase(pending->place.id);
  if (status == 200 && !pending->probe) ++answered_;
  if (status >= 500 && !pending->probe) ++failed_;
  pending->answer(status, std::move(why));
}

void ModelVersion::tell_wrong(const std::string& why) {
  const double now = steady_seconds();
  if (told_wrong_ >= 0 && now < told_wrong_ + 60) return;
  told_wrong_ = now;
  say(fmt::format("hypertune: version {} fails at requests (told once a minute): {}", files_->version, why));
}

bool ModelVersion::out_of_order() const {
  return state_ == State::ready && failed_starts_ >= most_failed_starts && ready_replicas() == 0;
}

void ModelVersion::fail_all(int status, const std::string& why) {
  if (batcher_) batcher_->take_all();
  for (auto& member : members_) member.batch.clear();
  const auto all = std::exchange(all_, {});
  for (const auto& [id, pending] : all) finish(pending, status, why);
}

void ModelVersion::fail_version(const std::string& why) {
  // One that has served before goes on trying: what is missing may come back.
  if (state_ == State::ready) {
    say(fmt::format("hypertune: no replica of version {} can be started: {}", files_->version, why));
    failed_starts_ = std::max(failed_starts_, most_failed_starts);
    if (out_of_order()) fail_all(503, none_starts);
    return restart_after(5);
  }
  state_ = State::failed;
  why_ = why;
  close();
  asio::post(parts_.io, changed_);
}

void ModelVersion::retire() {
  if (state_ == State::failed) return;
  state_ = State::retired;
  end_if_done();
  pump();
}

void ModelVersion::end_if_done() {
  if (state_ != State::retired || !all_.empty()) return;
  for (auto& member : members_) member.replica->end();
  members_.clear();
  asio::post(parts_.io, changed_);
}

void ModelVersion::close() {
  if (state_ != State::failed) state_ = State::retired;
  for (auto& member : members_) member.replica->end();
  fail_all(503, "the model is no longer served");
  members_.clear();
}

}  // namespace hypertune::inline v0::serving
