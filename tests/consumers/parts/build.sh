#!/bin/sh
# A project without a build system that has parts of the definitions: the core in one file, the others in another. What
# programs do that have the core alone, and what the linker says to one that names what is in the others.
set -e
hypertune=$1
here=$(dirname "$0")
compile() {
  ${CXX:-g++} -std=c++20 -Wall -Wextra -Werror -I"$hypertune/include" -I"$hypertune/backends/local/include" -c "$1" -o "$2"
}
link() {
  ${CXX:-g++} "$@" -lfmt -lsqlite3 -pthread
}
compile "$here/core.cpp" core.o
compile "$here/other_parts.cpp" other_parts.o
compile "$hypertune/examples/quickstart.cpp" quickstart.o
compile "$here/names_workers.cpp" names_workers.o
compile "$here/names_parts.cpp" names_parts.o
rm -rf run
mkdir run

# Without models, Auto searches in another way and says so, once; without a display, nothing else is said.
link quickstart.o core.o -o core_alone
link quickstart.o core.o other_parts.o -o with_models
(cd run && ../core_alone >core.result 2>core.notices)
(cd run && ../with_models >all.result 2>all.notices)
grep -q height= run/core.result
grep -q height= run/all.result
test "$(wc -l <run/core.notices)" = 1
grep -q 'this program has no models' run/core.notices
grep -q '^quickstart: ' run/all.notices
if grep -q 'no models' run/all.notices; then exit 1; fi

# Without groups, trials of several workers are refused.
link names_workers.o core.o -o without_groups
link names_workers.o core.o other_parts.o -o with_groups
if (cd run && ../without_groups >refused); then exit 1; fi
grep -q 'include <hypertune/src/groups.hpp>' run/refused
(cd run && ../with_groups >workers.result)
grep -q loss= run/workers.result

# The linker names the part that is missing.
if link names_parts.o core.o -o names_parts 2>message; then
  echo "a program without the parts that it names was linked" >&2
  exit 1
fi
for part in analysis models schedulers; do
  grep -q "undefined reference to .include_hypertune_src_${part}_hpp_or_link_hypertune_hypertune" message
done
link names_parts.o core.o other_parts.o -o names_parts
