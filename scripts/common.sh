# Shared by the scripts beside it; sourced, not run.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# ccache finds the same object again whatever folder the clone is in.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

# Two heavy C++ compilations at once need about 2 GiB: no more jobs than memory allows.
job_count() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 1024 / 1024 / 1.2)}' /proc/meminfo)
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

# Counts of all checks of a script. ctest's own tests count one by one.
passed=0 failed=0 failures=()

pass() { passed=$((passed + 1)); }
miss() {
  failed=$((failed + 1))
  failures+=("$1")
}

# check NAME COMMAND...: one counted check.
check() {
  local name=$1 begin=$SECONDS
  shift
  say "$name"
  if "$@"; then
    pass
    echo "-- $name: ok ($((SECONDS - begin)) s)"
  else
    miss "$name"
    echo "-- $name: FAILED ($((SECONDS - begin)) s)"
  fi
}

# run_ctest NAME BUILD_DIR ARGS...: runs ctest and adds its tests to the counts.
run_ctest() {
  local name=$1 dir=$2 log summary begin=$SECONDS
  shift 2
  say "$name"
  log=$(mktemp)
  # More at once than there are cores: many of them wait for others most of their time.
  ctest --test-dir "$dir" -j $((2 * jobs)) --no-tests=error --repeat "until-pass:${HYPERTUNE_TEST_TRIES:-1}" "$@" \
    </dev/null 2>&1 | tee "$log" || true
  sed -nE 's/^.*Test +#[0-9]+: (.*[^ .]) \.*\*\*\*(Failed|Timeout|Exception).*$/-- failed once at least: \1/p' "$log"
  summary=$(sed -nE 's/^[0-9]+% tests passed, ([0-9]+) tests? failed out of ([0-9]+).*/\1 \2/p' "$log")
  if [[ -z $summary ]]; then
    miss "$name: ctest gave no result"
  else
    failed=$((failed + ${summary% *}))
    passed=$((passed + ${summary#* } - ${summary% *}))
    while read -r line; do failures+=("$name: $line"); done \
      < <(sed -nE 's/^[[:space:]]+[0-9]+ - (.*) \((Failed|Timeout|SEGFAULT|Subprocess aborted|.*Exception.*|Not Run.*)\).*$/\1 (\2)/p' "$log")
  fi
  rm -f "$log"
  echo "-- $name: $((SECONDS - begin)) s"
}

# finish: the closing line and the exit code.
finish() {
  if ((failed > 0)); then
    say "failed"
    printf '  %s\n' "${failures[@]}"
  fi
  printf '\n%d passed, %d failed\n' "$passed" "$failed"
  ((failed == 0 && passed > 0))
}
