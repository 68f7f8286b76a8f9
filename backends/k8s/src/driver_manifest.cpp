// The Kubernetes objects of a driver in the cluster.
#include "driver_manifest.hpp"

#include "checkpoint_volume.hpp"
#include "pod_manifest.hpp"
#include "yaml_json.hpp"

#include <hypertune/config/yaml.hpp>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

namespace json = boost::json;

// Takes from the workers' template where images come from and the security settings; not what only trials need.
void take_over(json::object& spec, const KubernetesOptions& workers) {
  if (workers.pod.empty()) return;
  const auto text = load_yaml_text(workers.pod, "executor.pod");
  const auto given = text.find("spec");
  if (!given || !given->is_map()) return;
  for (const char* key : {"imagePullSecrets", "securityContext", "nodeSelector", "tolerations", "dnsPolicy",
                          "dnsConfig", "runtimeClassName", "schedulerName", "hostAliases"})
    if (const auto value = given->find(key)) spec[key] = json_of(*value);
  const auto containers = given->find("containers");
  if (!containers || !containers->is_list()) return;
  for (const auto& each : containers->items()) {
    if (!each.is_map()) continue;
    const auto name = each.find("name");
    if (containers->size() > 1 && (!name || name->as<std::string>() != container_of(workers))) continue;
    for (const char* key : {"imagePullPolicy", "securityContext"})
      if (const auto value = each.find(key)) spec["containers"].at(0).get_object()[key] = json_of(*value);
    if (const auto image = each.find("image"); image && workers.image.empty())
      spec["containers"].at(0).get_object()["image"] = json_of(*image);
  }
}

// Mounts the workers' volume for checkpoints, which may be the one with the record.
void add_checkpoints(json::object& spec, const KubernetesOptions& workers, const std::string& claim) {
  if (workers.volume.empty()) return;
  const bool same = workers.volume == claim;
  if (!same)
    spec["volumes"].get_array().emplace_back(
        json::object{{"name", volume_name}, {"persistentVolumeClaim", {{"claimName", json::string(workers.volume)}}}});
  spec["containers"]
      .at(0)
      .at("volumeMounts")
      .get_array()
      .emplace_back(json::object{{"name", same ? "hypertune" : volume_name},
                                 {"mountPath", json::string(volume_in_driver(workers).string())}});
}

json::object pod_spec(const DriverJobOptions& options, const std::string& name, const std::string& claim,
                      json::array command) {
  const auto millis = std::max<std::int64_t>(1, std::llround(options.cpus * 1000));
  json::object requests{{"cpu", json::string(fmt::format("{}m", millis))},
                        {"memory", json::string(fmt::to_string(options.memory))}};
  json::object container{
      {"name", "driver"},
      {"command", std::move(command)},
      {"workingDir", json::string(fmt::format("{}/{}", volume_folder, name))},
      {"resources", {{"requests", std::move(requests)}}},
      {"env", json::array{json::object{{"name", "HYPERTUNE_POD_NAME"},
                                       {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.name"}}}}}},
                          json::object{{"name", "HYPERTUNE_POD_IP"},
                                       {"valueFrom", {{"fieldRef", {{"fieldPath", "status.podIP"}}}}}},
                          json::object{{"name", "HYPERTUNE_EXPERIMENT_LABEL"}, {"value", json::string(name)}},
                          json::object{{"name", "HYPERTUNE_PROGRAM"}, {"value", json::string(options.workers.program)}},
                          json::object{{"name", json::string(job_variable)}, {"value", json::string(name)}},
                          json::object{{"name", "HOME"}, {"value", json::string(volume_folder)}}}},
      {"volumeMounts", json::array{json::object{{"name", "hypertune"}, {"mountPath", json::string(volume_folder)}}}}};
  if (!options.workers.image.empty()) container["image"] = json::string(options.workers.image);
  json::object spec{
      {"restartPolicy", "Never"},
      {"terminationGracePeriodSeconds", 60},
      {"enableServiceLinks", false},
      {"serviceAccountName", json::string(options.service_account)},
      {"containers", json::array{std::move(container)}},
      {"volumes", json::array{json::object{{"name", "hypertune"},
                                           {"persistentVolumeClaim", {{"claimName", json::string(claim)}}}}}}};
  json::array secrets;
  for (const auto& secret : options.workers.image_pull_secrets)
    secrets.emplace_back(json::object{{"name", json::string(secret)}});
  if (!secrets.empty()) spec["imagePullSecrets"] = std::move(secrets);
  take_over(spec, options.workers);
  add_checkpoints(spec, options.workers, claim);
  // A node that does not answer is given up after half a minute; the driver then continues on another one.
  constexpr int patience = 30;
  if (!spec.contains("tolerations")) spec["tolerations"] = json::array();
  for (const char* taint : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
    spec["tolerations"].get_array().emplace_back(
        json::object{{"key", taint}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", patience}});
  return spec;
}

json::object labels_of(const std::string& name, std::string_view role) {
  return {{experiment_label, json::string(name)}, {role_label, json::string(role)}, {job_label, json::string(name)}};
}

}  // namespace

std::string driver_script(int patience, const std::string& termination_log) {
  // SIGTERM makes the driver save the experiment; Kubernetes sends it only to the first process of the container, so it
  // is passed on. If no driver can begin, the Job has to end as failed: before begin_own_job() its back-off allows no
  // second pod. In a later pod, in whose image the program no longer starts, only exit code 0 achieves that: see
  // DriverJob::state().
  return fmt::format("look=$(({0} / 20 + 1)) patience={0} message={1}\n", patience, termination_log) + R"sh(set -u
mkdir -p . || exit 1
leave() { if [ -n "${driver-}" ]; then kill -TERM "$driver"; else exit 130; fi; }
trap leave TERM
is_ours() { # that the file $1 names this submission
  is=
  [ ! -e "$1" ] || IFS= read -r is <"$1" || :
  [ "$is" = "$HYPERTUNE_SUBMISSION" ]
}
give_up() {
  echo "hypertune: $1" >&2
  [ ! -w "$message" ] || echo "$1" >"$message"
  if is_ours .begun; then exit 0; fi
  exit 1
}
: >waiting
seconds=0 quiet=0
while ! is_ours ready; do
  sleep 1 & wait "$!"
  seconds=$((seconds + 1))
  [ $((seconds % look)) = 0 ] || continue
  if [ -n "$(find . -path ./experiment -prune -o ! -name looking ! -name waiting -newer waiting -print 2>/dev/null)" ]; then
    : >waiting
    quiet=0
    continue
  fi
  quiet=$((quiet + look))
  [ "$quiet" != "$look" ] || echo "hypertune: this driver waits for its files: hypertune submit --kubernetes brings them"
  [ "$quiet" -lt "$patience" ] || give_up "nobody has brought its files: submit it again"
done
rm -f waiting looking
if [ -x ./hypertune ]; then program=./hypertune; else program=$HYPERTUNE_PROGRAM; fi
image="the image '${HYPERTUNE_IMAGE-}'"
command -v "$program" >/dev/null || give_up "there is no program '$program' in $image: name another image or executor.program"
said=$("$program" --version 2>&1)
code=$?
if [ "$code" != 0 ]; then
  # By this variable the loader of glibc lists the libraries, as ldd does, and starts nothing.
  lacks=$(LD_TRACE_LOADED_OBJECTS=1 "$program" 2>/dev/null | while read -r library arrow found rest; do
    [ "$arrow $found" != "=> not" ] || printf ' %s' "$library"
  done)
  [ -z "$lacks" ] || give_up "$image lacks libraries of '$program':$lacks; add them to it, or name an image that has them"
  case $said in
  "" | *rror*load*) ;;
  *"not found"*) [ "$code" != 127 ] ||
    give_up "$image has no dynamic loader for '$program', which is linked with glibc: an image of Alpine has none; name one that has it" ;;
  esac
  read -r line <<EOF || :
$said
EOF
  give_up "'$program' does not start in $image (exit code $code): $line"
fi
printf '%s\n' "$HYPERTUNE_SUBMISSION" >.begun.new && mv -f .begun.new .begun
while IFS= read -r word; do set -- "$@" "$word"; done <arguments
set -- "$@" --output experiment
[ ! -e experiment/experiment.db ] || set -- "$@" --resume
"$program" "$@" &
driver=$!
while :; do
  wait "$driver"
  code=$?
  kill -0 "$driver" 2>/dev/null || exit "$code"
done
)sh";
}

json::object driver_job_manifest(const DriverJobOptions& options, const std::string& name, const std::string& claim,
                                 const std::string& submission) {
  auto spec = pod_spec(options, name, claim,
                       {"sh", "-c", json::string(driver_script()), "hypertune-driver", "run", "sweep.yaml", "--plain"});
  auto& container = spec["containers"].at(0).get_object();
  const auto* image = container.if_contains("image");
  auto& environment = container["env"].get_array();
  environment.emplace_back(json::object{{"name", "HYPERTUNE_SUBMISSION"}, {"value", json::string(submission)}});
  environment.emplace_back(
      json::object{{"name", "HYPERTUNE_IMAGE"}, {"value", image != nullptr ? *image : json::value("")}});
  // Once the driver has begun, a new pod replaces one that was ended from outside, however often: see begin_own_job().
  // If the driver itself fails, the Job ends: see end_own_job(). A podFailurePolicy cannot express that: with one, a
  // pod on a lost node would have to end before it is replaced.
  json::object job{{"backoffLimit", 0},
                   {"template", {{"metadata", {{"labels", labels_of(name, "driver")}}}, {"spec", std::move(spec)}}}};
  if (options.ttl >= 0) job["ttlSecondsAfterFinished"] = static_cast<std::int64_t>(options.ttl);
  if (options.deadline > 0) job["activeDeadlineSeconds"] = static_cast<std::int64_t>(std::ceil(options.deadline));
  if (options.suspend) job["suspend"] = true;
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata",
           {{"name", json::string(name)},
            {"labels", labels_of(name, "driver")},
            {"annotations", {{submission_annotation, json::string(submission)}}}}},
          {"spec", std::move(job)}};
}

json::object claim_manifest(const DriverJobOptions& options, const std::string& name) {
  json::object spec{{"accessModes", json::array{"ReadWriteOnce"}},
                    {"resources", {{"requests", {{"storage", json::string(fmt::to_string(options.storage))}}}}}};
  if (!options.storage_class.empty()) spec["storageClassName"] = json::string(options.storage_class);
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolumeClaim"},
          {"metadata", {{"name", json::string(name)}, {"labels", labels_of(name, "volume")}}},
          {"spec", std::move(spec)}};
}

json::object reader_pod_manifest(const DriverJobOptions& options, const std::string& name, const std::string& pod,
                                 const std::string& claim, int seconds) {
  auto spec = pod_spec(options, name, claim,
                       {"sh", "-c", json::string(fmt::format("trap 'exit 0' TERM; sleep {} & wait", seconds))});
  spec["automountServiceAccountToken"] = false;
  spec.erase("serviceAccountName");
  spec["terminationGracePeriodSeconds"] = 1;
  spec["activeDeadlineSeconds"] = seconds + 60;
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", json::string(pod)}, {"labels", labels_of(name, "reader")}}},
          {"spec", std::move(spec)}};
}

}  // namespace hypertune::inline v0::k8s
