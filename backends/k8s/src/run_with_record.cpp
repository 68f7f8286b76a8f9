// Runs commands where a driver in the cluster keeps its record.
#include "driver_job_state.hpp"
#include "permissions.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/sleep_for.hpp>

#include <fmt/format.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::k8s {

using hypertune::detail::steady_seconds;

int DriverJob::run_with_record(const std::vector<std::string>& arguments,
                               const std::function<bool(std::string_view)>& out,
                               const std::function<bool(std::string_view)>& err, const std::stop_token& stop) {
  auto& self = *state_;
  const auto require_all = [&] { require_permissions(self.client, permissions_for({Use::read_record}), stop); };
  DriverJobState state;
  try {
    state = self.state(stop);
  } catch (const ApiError& error) {
    if (error.forbidden()) require_all();
    throw;
  }
  std::string pod = state.phase == DriverJobState::Phase::running ? state.pod : "";
  struct Reader {  // deletes the reader pod at the end of this call
    State* self;
    std::string pod = {};
    ~Reader() {
      try {
        if (!pod.empty()) self->remove(self->pods_path(pod), {});
      } catch (const std::exception&) {  // the pod ends by itself, and is deleted with the namespace's finished pods
      }
    }
  } reader{&self};
  if (pod.empty()) {
    require_all();  // before the pod that reads is made; where the driver's is used, less is needed
    const auto record = self.record(stop);
    if (!record.there && self.options.volume.empty() && state.phase == DriverJobState::Phase::none)
      fail(Errc::usage,
           "there is no job '{}' and no volume claim '{}' in namespace '{}': it was not submitted, or its record is on "
           "a claim of yours, which --volume names",
           self.name, record.claim, name_space());
    if (!record.there)
      fail(Errc::usage, "there is no volume claim '{}' in namespace '{}', with the record of '{}'", record.claim,
           name_space(), self.name);
    std::random_device device;
    pod = fmt::format("{}-reader-{:06x}", self.name, device() & 0xffffffU);
    constexpr int seconds = 300;
    self.create(self.pods_path(), reader_pod_manifest(self.options, self.name, pod, record.claim, seconds), stop);
    reader.pod = pod;
    const Seconds until = steady_seconds() + 60;
    for (;;) {
      const auto found = self.get(self.pods_path(pod), stop);
      const auto seen = found ? pod_state(found->as_object(), "driver") : PodState();
      if (seen.phase == PodState::Phase::running) break;
      if (seen.phase == PodState::Phase::ended || seen.prospect == PodState::Prospect::never ||
          steady_seconds() > until || stop.stop_requested())
        fail(Errc::io, "the pod that reads the experiment's folder does not run: it {}",
             seen.sentence.empty() ? "is gone" : seen.sentence);
      hypertune::detail::sleep_for(stop, 0.2);
    }
  }
  PodCommand command{.pod = pod,
                     .command = {"sh", "-c",
                                 R"sh(cd -- "$1" || exit 1; shift
# What goes wrong here is no end of the driver's.
export HYPERTUNE_BESIDE_DRIVER=1
unset HYPERTUNE_DRIVER_JOB
if [ -x ./hypertune ]; then exec ./hypertune "$@"; fi
if [ -n "$HYPERTUNE_PROGRAM" ] && [ -e arguments ]; then exec "$HYPERTUNE_PROGRAM" "$@"; fi
echo "hypertune: no files have come yet: hypertune submit --kubernetes brings them" >&2
exit 2)sh",
                                 "hypertune", self.folder()},
                     .container = "driver"};
  command.command.insert(command.command.end(), arguments.begin(), arguments.end());
  const auto done = self.client.run(command, {.take_out = out, .take_err = err, .deadline = 600}, stop);
  return done.exit;
}

}  // namespace hypertune::inline v0::k8s
