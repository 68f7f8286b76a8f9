# Functions shared by the scripts in this folder; sourced, not run.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# These settings make ccache's results independent of the clone's folder.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

# A heavy C++ compilation needs up to 2 GiB: no more jobs than fit into memory.
job_count() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 1024 / 1024 / 2)}' /proc/meminfo)
  ((memory < 1)) && memory=1
  echo $((cores < memory ? cores : memory))
}
jobs=${HYPERTUNE_JOBS:-$(job_count)}
export CMAKE_BUILD_PARALLEL_LEVEL=$jobs CTEST_OUTPUT_ON_FAILURE=1

say() { printf '\n== %s\n' "$*"; }

# configure PRESET ARGS...: silent unless it fails.
configure() {
  local preset=$1 log
  shift
  log=$(mktemp)
  if cmake --preset "$preset" "$@" >"$log" 2>&1; then rm -f "$log"; else cat "$log"; rm -f "$log"; return 1; fi
}

# If HYPERTUNE_DEADLINE (seconds since 1970) is set, nothing runs beyond it. What no time is left for is listed as left
# out in the last lines.
seconds_left() { echo $((${HYPERTUNE_DEADLINE:-EPOCHSECONDS + 86400} - EPOCHSECONDS)); }
limited() {
  local left
  left=$(seconds_left)
  if [[ -z ${HYPERTUNE_DEADLINE:-} ]]; then "$@"; else timeout --kill-after 10 $((left > 1 ? left : 1)) "$@"; fi
}
out_of_time() { (($(seconds_left) <= 0)); }

# The last lines of each failed test's output, shown at the end by the script that was started first.
if [[ -z ${HYPERTUNE_FAILED_OUTPUT:-} ]]; then
  HYPERTUNE_FAILED_OUTPUT=$(mktemp)
  export HYPERTUNE_FAILED_OUTPUT
  trap 'rm -f "$HYPERTUNE_FAILED_OUTPUT"' EXIT
  shows_failed_output=1
fi

# Counts of all checks of a script. Each test of ctest counts as one.
passed=0 failed=0 failures=() left_out=()

pass() { passed=$((passed + 1)); }
miss() {
  failed=$((failed + 1))
  failures+=("$1")
}
leave_out() { left_out+=("$1"); }

# check NAME COMMAND...: one counted check.
check() {
  local name=$1 begin=$SECONDS
  shift
  say "$name"
  if limited "$@"; then
    pass
    echo "-- $name: ok ($((SECONDS - begin)) s)"
  elif out_of_time; then
    leave_out "$name (no time)"
  else
    miss "$name"
    echo "-- $name: FAILED ($((SECONDS - begin)) s)"
  fi
}

# build PRESET [ARGS OF CMAKE...] [-- ARGS OF THE BUILD...]: returns whether the build succeeded.
build() {
  local preset=$1 begin=$SECONDS arguments=()
  shift
  while (($# > 0)) && [[ $1 != -- ]]; do arguments+=("$1") && shift; done
  shift $(($# > 0))
  say "build ($preset)"
  if configure "$preset" "${arguments[@]}" && limited cmake --build --preset "$preset" "$@"; then
    echo "-- build ($preset): $((SECONDS - begin)) s"
  elif out_of_time; then
    leave_out "build ($preset) and what is tested with it (no time)"
    return 1
  else
    miss "build ($preset)"
    return 1
  fi
}

# skipped_of BUILD_DIR LOG: prints a line for each group of tests that LOG calls skipped, of the same folder and for the
# same reason. The reason is the text after "skipped: " in their output up to an empty line, or else their last line.
skipped_of() {
  awk '
    FILENAME == log_file {
      if (/\*\*\*Skipped/ && sub(/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: /, "")) { sub(/ *\.*\*\*\*Skipped.*/, ""); skipped[$0] = 1 }
      next
    }
    /^[0-9]+\/[0-9]+ Test: / { name = $0; sub(/^[0-9]+\/[0-9]+ Test: /, "", name); why = last = ""; inside = joined = 0 }
    /^Output:$/ { inside = 1; next }
    inside && /^<end of output>/ {
      inside = 0
      if (!(name in skipped)) next
      if (why == "") why = last == "" ? "see its output" : last
      folder = name; if (!sub(/: .*/, "", folder)) folder = ""
      key = folder "\t" why
      if (++count[key] == 1) { order[++kinds] = key; first[key] = name }
    }
    inside && joined { if (/[^ ]/) { sub(/^ +/, " "); why = why $0; next } else joined = 0 }
    inside && why == "" && /skipped: / { why = $0; sub(/.*skipped: /, "", why); joined = 1 }
    inside && /[^ -]/ { last = $0; sub(/^ +/, "", last) }
    END {
      for (i = 1; i <= kinds; i++) {
        split(order[i], part, "\t")
        print (count[order[i]] == 1 ? first[order[i]] : count[order[i]] " tests of " part[1]) " (skipped: " part[2] ")"
      }
    }' log_file="$2" "$2" "$1/Testing/Temporary/LastTest.log"
}

# run_ctest NAME BUILD_DIR ARGS...: runs ctest and adds its tests to the counts.
run_ctest() {
  local name=$1 dir=$2 log good bad all begin=$SECONDS
  shift 2
  say "$name"
  log=$(mktemp)
  # More jobs than cores, because many tests mostly wait for other processes.
  limited ctest --test-dir "$dir" -j $((3 * jobs)) --no-tests=error "$@" </dev/null 2>&1 | tee "$log" || true
  # "12/340 Test #7: name ....   Passed    0.03 sec", or ***Failed, ***Skipped and others in place of Passed
  all=$(sed -nE 's,^ *[0-9]+/([0-9]+) Test +#.*,\1,p' "$log" | tail -n 1)
  good=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#.* Passed +[0-9.]+ sec' "$log" || true)
  mapfile -t bad < <(sed -nE '/\*\*\*Skipped/d; s,^ *[0-9]+/[0-9]+ Test +#[0-9]+: (.*[^ .]) \.*\*\*\*(.*[^ ]) +[0-9.]+ sec.*,\1 (\2),p' "$log")
  passed=$((passed + good))
  # ctest prints a failed test's output below its line, up to its next own line
  awk -v most=60 '
    function show() { for (i = (n > most ? n - most : 0); i < n; i++) print lines[i]; n = 0; inside = 0 }
    /^ *[0-9]+\/[0-9]+ Test +#/ || /^ +Start +[0-9]+: / || /tests passed, .* failed out of/ { if (inside) show() }
    /^ *[0-9]+\/[0-9]+ Test +#.*\*\*\*/ && !/\*\*\*Skipped/ { inside = 1; print; next }
    inside { lines[n++] = "  " $0 }
    END { if (inside) show() }' "$log" >>"$HYPERTUNE_FAILED_OUTPUT"
  for line in "${bad[@]}"; do miss "$name: $line"; done
  while read -r line; do leave_out "$name: $line"; done < <(skipped_of "$dir" "$log")
  if [[ -z $all ]]; then
    if out_of_time; then leave_out "$name (no time)"; else miss "$name: ctest ran no test"; fi
  elif ! grep -q 'tests passed, .* failed out of' "$log"; then
    all=$((all - good - ${#bad[@]}))
    if out_of_time; then leave_out "$name: $all tests (no time)"; else miss "$name: ctest ended with $all tests to go"; fi
  fi
  rm -f "$log"
  echo "-- $name: $((SECONDS - begin)) s"
}

# finish: prints the closing lines; returns the exit code.
finish() {
  if ((failed > 0)); then
    if [[ -n ${shows_failed_output:-} && -s $HYPERTUNE_FAILED_OUTPUT ]]; then
      say "what the failed tests printed"
      cat "$HYPERTUNE_FAILED_OUTPUT"
    fi
    say "failed"
    printf '  %s\n' "${failures[@]}"
  fi
  echo
  ((${#left_out[@]} == 0)) || printf 'left out: %s\n' "${left_out[@]}"
  printf '%d passed, %d failed\n' "$passed" "$failed"
  ((failed == 0 && passed > 0))
}
