#include "rollout.hpp"

#include "replica_scale.hpp"

#include <hypertune/detail/as_duration.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/net/spawn.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace hypertune::inline v0::serving {

namespace asio = boost::asio;
using hypertune::detail::say;

namespace {

constexpr double tick_seconds = 0.25;

template <class T>
bool all_finite(const Tensor& tensor) {
  const auto values = tensor.values<T>();
  return std::all_of(values.begin(), values.end(), [](T value) { return std::isfinite(value); });
}

bool is_finite(const Tensor& tensor) {
  if (tensor.datatype == Datatype::fp32) return all_finite<float>(tensor);
  if (tensor.datatype == Datatype::fp64) return all_finite<double>(tensor);
  return true;
}

}  // namespace

Rollout::Rollout(ModelVersion::Parts parts, std::optional<InferenceRequest> validation)
    : parts_(parts), validation_(std::move(validation)), canary_end_(parts.io), tick_(parts.io) {}

std::vector<std::shared_ptr<ModelVersion>> Rollout::all() const {
  std::vector<std::shared_ptr<ModelVersion>> found;
  if (live_) found.push_back(live_);
  if (candidate_) found.push_back(candidate_);
  found.insert(found.end(), retiring_.begin(), retiring_.end());
  return found;
}

void Rollout::offer(std::shared_ptr<const ModelFiles> files, bool pinned) {
  rejection_.clear();
  if (pinned && live_ && candidate_ && candidate_->files().version != files->version) {
    next_ = nullptr;
    give_up_candidate();
  }
  if (candidate_) {
    next_ = std::move(files);  // the newest of those that come meanwhile
    return;
  }
  if (!live_ || live_->files().version != files->version) start(std::move(files));
}

void Rollout::start(std::shared_ptr<const ModelFiles> files) {
  proven_ = false;
  say(fmt::format("hypertune: version {}{} begins", files->version,
                  files->value ? fmt::format(" ({} {:.6g})", files->value->metric, files->value->value) : ""));
  candidate_ = std::make_shared<ModelVersion>(parts_, std::move(files), [this] { on_change(); });
  candidate_->scale(live_ ? live_->wanted() : std::max(1, parts_.options.replicas.min_replicas));
}

std::string Rollout::roll_back() {
  next_ = nullptr;
  if (live_ && candidate_) {
    give_up_candidate();
    return live_->files().version;
  }
  if (!previous_ || candidate_) return {};
  const std::string name = previous_->version;
  start(std::exchange(previous_, nullptr));
  proven_ = true;
  return name;
}

// It goes, and the live one stays.
void Rollout::give_up_candidate() {
  candidate_->retire();
  retiring_.push_back(std::exchange(candidate_, nullptr));
  validating_ = canary_ = false;
  canary_end_.cancel();
  say(fmt::format("hypertune: version {} stays", live_->files().version));
}

std::shared_ptr<ModelVersion> Rollout::choose(std::string_view wanted) {
  const auto is = [&](const std::shared_ptr<ModelVersion>& version) {
    return version && version->state() == ModelVersion::State::ready && version->files().version == wanted;
  };
  if (!wanted.empty()) return is(live_) ? live_ : canary_ && is(candidate_) ? candidate_ : nullptr;
  if (canary_ && candidate_) {
    canary_turn_ += parts_.options.canary_share;
    if (canary_turn_ >= 1) {
      canary_turn_ -= 1;
      return candidate_;
    }
  }
  return live_;
}

void Rollout::on_change() {
  std::erase_if(retiring_, [](const auto& version) { return version->ongoing() == 0; });
  if (!candidate_ || validating_ || canary_) return;
  if (candidate_->state() == ModelVersion::State::failed) return reject(candidate_->why());
  if (candidate_->state() != ModelVersion::State::ready) return;
  if (live_ && live_->signature() != candidate_->signature())
    return reject("it takes or gives other tensors than the live one");
  validating_ = true;
  hypertune::detail::spawn(parts_.io, validate(candidate_),
                           [this, version = candidate_](const std::string& why) { validated(version, why); });
}

// What each replica is asked before it counts as ready: the first answer of many models takes long.
std::optional<InferenceRequest> Rollout::probe_for(const ModelVersion& version) const {
  if (validation_) return validation_;
  if (!version.signature()) return std::nullopt;
  InferenceRequest zeros;
  for (const auto& spec : version.signature()->inputs) {
    Tensor tensor{spec.name, spec.datatype, spec.shape, {}};
    for (auto& extent : tensor.shape) extent = std::max<std::int64_t>(extent, 1);
    const auto count = element_count(tensor.shape);
    if (!count || *count > (1U << 24U)) return std::nullopt;
    tensor.data.assign(*count * std::max<std::size_t>(4, size_of(spec.datatype)), '\0');
    if (spec.datatype != Datatype::bytes) tensor.data.resize(*count * size_of(spec.datatype));
    zeros.inputs.push_back(std::move(tensor));
  }
  return zeros;
}

asio::awaitable<void> Rollout::validate(std::shared_ptr<ModelVersion> version) {
  std::string trouble;
  const auto probe = probe_for(*version);
  std::vector<std::shared_ptr<Pending>> asked;
  if (probe)
    for (int i = 0; i < version->wanted(); ++i) {
      auto pending = std::make_shared<Pending>(parts_.io);
      pending->request = *probe;
      pending->request.timeout.reset();
      pending->place.alone = pending->probe = true;
      asked.push_back(pending);
      version->add(pending);
    }
  for (const auto& pending : asked) {
    while (pending->status == 0) co_await pending->done.wait();
    if (!validation_ || !trouble.empty()) continue;
    if (pending->status != 200) trouble = fmt::format("it answers the validation request by: {}", pending->error);
    for (const auto& output : pending->outputs)
      if (trouble.empty() && !is_finite(output))
        trouble =
            fmt::format("its answer to the validation request has numbers in '{}' that are not finite", output.name);
  }
  validated(version, trouble);
}

void Rollout::validated(const std::shared_ptr<ModelVersion>& version, const std::string& trouble) {
  if (candidate_ != version) return;  // it was given up meanwhile
  validating_ = false;
  if (!trouble.empty()) return reject(trouble);
  if (version->state() != ModelVersion::State::ready) return reject("it was lost before it took over");
  if (live_ && !proven_ && parts_.options.canary_share > 0) return begin_canary();
  promote();
}

void Rollout::begin_canary() {
  canary_ = true;
  canary_turn_ = 0;
  live_answered_ = live_->answered();
  live_failed_ = live_->failed();
  say(fmt::format("hypertune: version {} answers {:.3g} of the requests for {} s", candidate_->files().version,
                  parts_.options.canary_share, parts_.options.canary_time));
  canary_end_.expires_after(hypertune::detail::as_duration(parts_.options.canary_time));
  canary_end_.async_wait([this](const boost::system::error_code& error) {
    if (!error && canary_) end_canary();
  });
}

bool Rollout::worse_than_live() const {
  const auto rate = [](std::uint64_t answered, std::uint64_t failed) {
    return failed == 0 ? 0 : static_cast<double>(failed) / static_cast<double>(answered + failed);
  };
  return rate(candidate_->answered(), candidate_->failed()) >
         2 * rate(live_->answered() - live_answered_, live_->failed() - live_failed_);
}

void Rollout::end_canary() {
  canary_ = false;
  if (worse_than_live()) return reject(fmt::format("{} of its requests failed", candidate_->failed()));
  promote();
}

void Rollout::promote() {
  if (live_) {
    ++parts_.metrics.swaps;
    previous_ = live_->shared_files();
    retiring_.push_back(live_);
  }
  auto old = std::exchange(live_, std::exchange(candidate_, nullptr));
  say(fmt::format("hypertune: version {} answers{}", live_->files().version,
                  old ? " in place of " + old->files().version : std::string()));
  if (old) old->retire();
  if (!std::exchange(ticking_, true)) scale();
  settle();
}

void Rollout::reject(const std::string& why) {
  ++parts_.metrics.rejected_versions;
  rejected_ = candidate_->files().version;
  rejection_ = fmt::format("version {} was rejected: {}", rejected_, why);
  // Without another one this is the end of the server, which says it.
  if (live_ || parts_.options.follow)
    say(fmt::format("hypertune: {}{}", rejection_, live_ ? "; " + live_->files().version + " stays" : std::string()));
  canary_ = validating_ = false;
  candidate_->retire();
  retiring_.push_back(std::exchange(candidate_, nullptr));
  settle();
}

void Rollout::settle() {
  std::erase_if(retiring_, [](const auto& version) { return version->ongoing() == 0; });
  if (auto next = std::exchange(next_, nullptr)) offer(std::move(next));
  if (changed) changed();
}

// Ray Serve's rule: the requests under way, by how many of them a replica is to have.
void Rollout::scale() {
  const auto& replicas = parts_.options.replicas;
  constexpr std::uint64_t enough = 5;
  if (canary_ && candidate_->failed() >= enough && candidate_->failed() > candidate_->answered() && worse_than_live()) {
    canary_end_.cancel();
    end_canary();
  }
  if (live_ && live_->state() == ModelVersion::State::ready) {
    ReplicaScale scale{live_->wanted(), more_since_, fewer_since_};
    scale.step(replicas, static_cast<double>(live_->ongoing()), hypertune::detail::steady_seconds());
    more_since_ = scale.more_since;
    fewer_since_ = scale.fewer_since;
    if (scale.replicas != live_->wanted()) live_->scale(scale.replicas);
  }
  tick_.expires_after(hypertune::detail::as_duration(tick_seconds));
  tick_.async_wait([this](const boost::system::error_code& error) {
    if (!error) scale();
  });
}

void Rollout::close() {
  for (const auto& version : all()) version->close();
}

}  // namespace hypertune::inline v0::serving
