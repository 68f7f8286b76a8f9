#!/usr/bin/env bash
# ngspice 39.3 (Debian 12): a circuit whose .control block prints its results without .print or .plot ends with 1.
#
# ngspice -b runs the analyses and the .control block, and prints what is asked for there. One would guess exit code 0.
# It then looks for .print, .plot and .fourier lines, finds none, says so and exits with 1, although every number is there.
# Whatever goes by exit codes (make, a job script, a tuner) takes each such run for a failure. "quit 0" at the end of the
# .control block gives 0.
#
# Seen on 2026-11-27: exit code 1 with the result printed, and 0 with quit.
source "$(dirname "$0")/common.sh"
version=39.3+ds-1
debian ngspice="$version"
ngspice=$(find "$tmp/root" -name ngspice -type f -perm -u+x | head -n 1)
export SPICE_LIB_DIR=$tmp/root/usr/share/ngspice SPICE_SCRIPTS=$tmp/root/usr/share/ngspice/scripts
export LD_LIBRARY_PATH=$tmp/root/usr/lib/x86_64-linux-gnu

circuit() {
  printf '%s\n' "a low-pass filter" "v1 in 0 dc 0 ac 1" "r1 in out 1k" "c1 out 0 1u" ".control" "ac dec 10 1 100k" \
    "meas ac f3db when vdb(out)=-3" "$@" ".endc" ".end"
}
circuit >"$tmp/plain.cir"
circuit "quit 0" >"$tmp/quit.cir"
run() {
  local code=0
  "$ngspice" -b "$tmp/$1.cir" >"$tmp/out" 2>&1 </dev/null || code=$?
  echo "exit code $code, $(grep -o 'f3db *= *[0-9.]*' "$tmp/out" | tr -s ' ' | head -n 1)"
}
expect version "ngspice-39" "$("$ngspice" --version 2>/dev/null | grep -o 'ngspice-[0-9]*' | head -n 1)"
expect "without quit" "exit code 1, f3db = 1.58" "$(run plain | sed -E 's/(\.[0-9]{2}).*/\1/')"
expect "with quit 0" "exit code 0, f3db = 1.58" "$(run quit | sed -E 's/(\.[0-9]{2}).*/\1/')"
