// The keeper of a pod whose image does not contain the hypertune program: a shell script.
#include <hypertune/k8s/pod_keeper.hpp>

namespace hypertune::inline v0::k8s {

// POSIX sh; tested with dash and busybox. As the first process it reaps orphans whenever it waits. A mark's file name
// has the pid and the start time of its process (process/process_marks.hpp), so that a reused pid gets no signal.
// The trap is set before the folder exists: whoever sees the folder may send the signal.
std::string_view hold_script() {
  return R"sh(folder=$1 limit=$2 asked=0 told=0 idle=0
trap 'asked=$((asked + 1))' TERM INT
umask 077
mkdir -p "$folder" || exit 1
started() { # of process $1, in $start
  start=
  { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
  set -- ${line##*)}
  case $1 in Z | X) return 1 ;; esac
  shift 19
  start=$1
}
look() { # at those that have left marks, and those that had when they were last seen; in $alive and $numbers
  before=$alive
  alive=' ' numbers=
  for mark in "$folder"/*.* $before; do
    name=${mark##*/}
    number=${name%.*}
    case $number in '' | 1 | *[!0-9]*) continue ;; esac
    case $alive in *" $name "*) continue ;; esac
    if started "$number" && [ "$start" = "${name##*.}" ]; then
      alive="$alive$name "
      numbers="$numbers $number"
    else
      rm -f "$folder/$name"
    fi
  done
}
alive=
while :; do
  look
  if [ "$asked" -gt 0 ]; then
    [ -n "$numbers" ] || exit 0
    if [ "$asked" -gt 1 ]; then
      kill -KILL $numbers
    elif [ "$told" -eq 0 ]; then
      told=1
      kill -TERM $numbers
    fi
  elif [ -n "$numbers" ] || [ -e "$folder/alive" ]; then
    rm -f "$folder/alive"
    idle=0
  elif [ "$idle" -ge "$limit" ]; then
    echo "hypertune: no driver has been here for $limit s, so that this pod ends" >&2
    exit 0
  else
    idle=$((idle + 1))
  fi
  sleep 1 &
  wait "$!"
done
)sh";
}

}  // namespace hypertune::inline v0::k8s
