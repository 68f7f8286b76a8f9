// WorkerJobs: sbatch, waiting, scancel.
#include "worker_jobs.hpp"

#include "srun.hpp"

#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/detail/plural.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/sleep_for.hpp>
#include <hypertune/error.hpp>
#include <hypertune/process/subprocess.hpp>
#include <hypertune/record/detail/journal_lock.hpp>
#include <hypertune/remote/dialer.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::slurm {
namespace {

using hypertune::detail::steady_seconds;
using remote::DialError;
using remote::FailureClass;

// The number that `sbatch --parsable` prints, as "12" or "12;cluster"; 0: none. A wrapper may print other lines.
std::uint64_t job_number(std::string_view printed) {
  std::uint64_t found = 0;
  while (!printed.empty()) {
    const auto line = hypertune::detail::take_until(printed, '\n');
    std::uint64_t id = 0;
    const auto [after, error] = std::from_chars(line.data(), line.data() + line.size(), id);
    if (error == std::errc() && (after == line.data() + line.size() || *after == ';')) found = id;
  }
  return found;
}

DialError error_of(const Trouble& trouble) {
  return {trouble.failure, trouble.failure == FailureClass::permanent
                               ? trouble.why
                               : fmt::format("Slurm does not answer ({})", trouble.why)};
}

}  // namespace

// By the folder itself, not only by its name: two machines may each have a folder of this name, and a copy of an
// experiment is a different one. Its number and time of birth are the same wherever a shared folder is mounted.
std::string job_stem(const std::string& experiment, const std::filesystem::path& directory) {
  std::error_code error;
  auto place = std::filesystem::weakly_canonical(directory, error);
  if (error) place = std::filesystem::absolute(directory, error);
  struct statx facts{};
  std::string folder;
  if (::statx(AT_FDCWD, directory.c_str(), 0, STATX_INO | STATX_BTIME, &facts) == 0) {
    folder = std::to_string(facts.stx_ino);
    if ((facts.stx_mask & STATX_BTIME) != 0)
      folder += fmt::format(" {}.{}", facts.stx_btime.tv_sec, facts.stx_btime.tv_nsec);
  }
  const auto hash = hypertune::detail::ContentHash::of(fmt::format("{}\n{}\n{}", ::getuid(), place.string(), folder));
  return fmt::format("{}-{}", experiment.empty() ? "hypertune" : job_word(experiment), hash.substr(0, 8));
}

bool WorkerJobs::drives() const {
  const auto driver = driver_of(plan_.directory);
  return driver && driver->pid == ::getpid() && driver->host == hypertune::detail::host_name();
}

// The driver locks its experiment's folder soon after it has started the executor.
void WorkerJobs::await_lock(const std::stop_token& stop) const {
  constexpr double patience = 60, interval = 0.02;
  for (const double until = steady_seconds() + patience; !drives();) {
    if (stop.stop_requested()) throw DialError(FailureClass::transient, "it was not waited for any longer");
    if (steady_seconds() > until)
      throw DialError(FailureClass::transient,
                      fmt::format("the experiment in '{}' is not locked by this driver", plan_.directory.string()));
    hypertune::detail::sleep_for(stop, interval);
  }
}

// While this driver has the lock and has submitted nothing, all jobs of this experiment's name are those of a driver
// that is gone.
bool WorkerJobs::end_earlier(const std::stop_token& stop, Trouble& trouble) {
  const std::lock_guard hold(earlier_mutex_);
  if (earlier_ended_) return true;
  std::vector<std::uint64_t> left;
  if (!cancel_all(stop, trouble, left)) return false;
  earlier_ended_ = true;
  if (!left.empty())
    plan_.say(fmt::format("an earlier driver of this experiment had left {} job{} in Slurm ({}): cancelled",
                          left.size(), hypertune::detail::plural(static_cast<std::int64_t>(left.size())),
                          fmt::join(left, " ")));
  return true;
}

bool WorkerJobs::cancel_all(const std::stop_token& stop, Trouble& trouble, std::vector<std::uint64_t>& ids) {
  auto found = plan_.queue.jobs_of(plan_.stem, stop, trouble);
  if (!found) return false;
  ids = std::move(*found);
  return plan_.queue.cancel(ids, trouble);
}

std::uint64_t WorkerJobs::submit(const std::string& name, const std::vector<std::string>& sbatch,
                                 const std::stop_token& stop) {
  Trouble trouble;
  bool unclear = false;
  {
    const std::lock_guard hold(mutex_);
    unclear = unclear_.contains(name);
  }
  if (unclear) {
    const auto found = plan_.queue.newest({name}, stop, trouble);
    std::vector<std::uint64_t> ids;
    if (found)
      for (const auto& [job_name, job] : *found) ids.push_back(job.id);
    if (!found || !plan_.queue.cancel(ids, trouble)) throw error_of(trouble);
    const std::lock_guard hold(mutex_);
    unclear_.erase(name);
  }
  process::RunOptions options;
  // With a keeper, because a Ctrl-C may kill this process while it waits.
  options.spawn = {.environment = plan_.environment, .keeper = process::Keeper::group};
  const auto script = job_script(plan_.orphan);
  options.input = process::whole(script);
  options.deadline = 30;
  options.stop = stop;
  process::Collected said;
  try {
    said = process::collect(sbatch, std::move(options));
  } catch (const process::NotStarted&) {
    throw DialError(FailureClass::permanent, "there is no program sbatch", Errc::usage);
  }
  const auto id = said.code() == 0 ? job_number(said.out) : 0;
  if (id > 0) {
    guard_.add(id);
    return id;
  }
  if (!said.late && !said.stopped && said.code() != 0)
    throw DialError(classify_srun(said.err), reason_of_srun(said.err));
  {
    const std::lock_guard hold(mutex_);
    unclear_.insert(name);
  }
  throw DialError(FailureClass::transient, said.stopped ? "it was not waited for any longer"
                                           : said.late  ? "sbatch does not answer"
                                                        : "sbatch has printed no job number");
}

std::uint64_t WorkerJobs::start(const std::string& worker, const std::string& name,
                                const std::vector<std::string>& sbatch, const std::stop_token& stop) {
  await_lock(stop);
  Trouble trouble;
  if (!end_earlier(stop, trouble)) throw error_of(trouble);
  const auto id = submit(name, sbatch, stop);
  const auto job =
      std::make_shared<WorkerJob>(WorkerJob{.worker = worker, .name = name, .id = id, .submitted = steady_seconds()});
  std::unique_lock lock(mutex_);
  waiting_[id] = job;
  const bool settled = changed_.wait(lock, stop, [&] { return job->state != WorkerJob::State::waiting; });
  waiting_.erase(id);
  if (job->state == WorkerJob::State::running) return id;
  lock.unlock();
  end(id);
  throw DialError(FailureClass::transient, settled && job->state == WorkerJob::State::ended
                                               ? fmt::format("its job {} has ended before its agent was started", id)
                                               : "it was not waited for any longer");
}

void WorkerJobs::change(std::uint64_t id, WorkerJob::State state) {
  {
    const std::lock_guard hold(mutex_);
    const auto found = waiting_.find(id);
    if (found == waiting_.end() || found->second->state != WorkerJob::State::waiting) return;
    found->second->state = state;
  }
  changed_.notify_all();
}

void WorkerJobs::release(const std::string& worker) {
  {
    const std::lock_guard hold(mutex_);
    for (const auto& [id, job] : waiting_)
      if (job->worker == worker && job->state == WorkerJob::State::waiting) job->state = WorkerJob::State::unwanted;
  }
  changed_.notify_all();
}

std::vector<WorkerJob> WorkerJobs::waiting() const {
  const std::lock_guard hold(mutex_);
  std::vector<WorkerJob> all;
  for (const auto& [id, job] : waiting_)
    if (job->state == WorkerJob::State::waiting) all.push_back(*job);
  return all;
}

// Cancels all that are to be, together; false: Slurm does not answer. For some time after that it is not asked again.
bool WorkerJobs::cancel_ended(Trouble& trouble) {
  constexpr Seconds pause = 10;
  const std::lock_guard one(cancel_mutex_);
  std::vector<std::uint64_t> ids;
  {
    const std::lock_guard hold(mutex_);
    ids.assign(to_cancel_.begin(), to_cancel_.end());
  }
  if (ids.empty()) return true;
  if (steady_seconds() - no_answer_at_ < pause) {
    trouble = {"it has just not answered"};
    return false;
  }
  if (!plan_.queue.cancel(ids, trouble)) {
    no_answer_at_ = steady_seconds();
    return false;
  }
  for (const auto id : ids) guard_.remove(id);
  const std::lock_guard hold(mutex_);
  for (const auto id : ids) to_cancel_.erase(id);
  return true;
}

void WorkerJobs::end(std::uint64_t id) {
  {
    const std::lock_guard hold(mutex_);
    to_cancel_.insert(id);
  }
  Trouble ignored;  // clean_up() and finish() try again
  cancel_ended(ignored);
}

void WorkerJobs::clean_up() {
  Trouble ignored;
  cancel_ended(ignored);
}

std::string WorkerJobs::finish() {
  Trouble trouble;
  {
    const std::lock_guard one(cancel_mutex_);
    no_answer_at_ = -1e9;
  }
  const bool cancelled = cancel_ended(trouble);
  // With its own jobs cancelled, all that have this experiment's name are those of an earlier driver, or such of which
  // this one does not know.
  std::set<std::string> unclear;
  {
    const std::lock_guard hold(mutex_);
    unclear = unclear_;
  }
  bool all = cancelled;
  if (cancelled && drives()) {
    std::vector<std::uint64_t> ignored;
    all = unclear.empty() ? end_earlier({}, trouble) : cancel_all({}, trouble, ignored);
    if (all) unclear.clear();
  }
  if (all && unclear.empty()) return {};
  std::vector<std::uint64_t> ids;
  {
    const std::lock_guard hold(mutex_);
    ids.assign(to_cancel_.begin(), to_cancel_.end());
  }
  std::string which, how;
  if (!ids.empty()) {
    which =
        fmt::format("job{} {}", hypertune::detail::plural(static_cast<std::int64_t>(ids.size())), fmt::join(ids, " "));
    how = fmt::format("scancel {}", fmt::join(ids, " "));
  }
  if (!unclear.empty()) {
    which += fmt::format("{}jobs named {}", which.empty() ? "" : " and perhaps ", fmt::join(unclear, ", "));
    how += fmt::format("{}scancel --name={}", how.empty() ? "" : " and ", fmt::join(unclear, " and scancel --name="));
  }
  if (which.empty()) return {};
  return fmt::format(
      "Slurm does not answer ({}), so {} may be left. Such a job ends by itself: within seconds if it runs, else "
      "{:g} s after it has begun. The next driver of this experiment (--resume) cancels it. When Slurm answers "
      "again, so does: {}",
      trouble.why, which, plan_.orphan, how);
}

}  // namespace hypertune::inline v0::slurm
