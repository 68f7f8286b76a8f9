#!/bin/sh
# A project without a build system, with the warnings that projects have: its own files see declarations, and two files,
# which nothing but a new hypertune compiles again, have the definitions: the core, and the other parts. Then a program with
# the core alone, one in a single file, and what the linker says to a project that has forgotten definitions.
set -e
hypertune=$1
here=$(dirname "$0")
compile() {
  ${CXX:-g++} -std=c++20 -Wall -Wextra -Werror -I"$hypertune/include" -I"$hypertune/backends/local/include" "$@"
}
objects=
for source in "$here"/../app/*.cpp; do
  name=$(basename "$source" .cpp)
  compile -O2 -c "$source" -o "$name.o"
  objects="$objects $name.o"
done
if ${CXX:-g++} $objects -o app -lfmt -lsqlite3 -pthread 2>message; then
  echo "a program without definitions was linked" >&2
  exit 1
fi
grep -m 1 'undefined reference' message | grep -q include_hypertune_src_hpp_in_one_file_or_link_hypertune_hypertune

compile -O1 -c "$here/hypertune_core.cpp" -o hypertune_core.o
compile -O1 -c "$here/hypertune_parts.cpp" -o hypertune_parts.o
${CXX:-g++} $objects hypertune_core.o hypertune_parts.o -o app -lfmt -lsqlite3 -pthread

# Without models, Auto searches in another way and says so, once.
compile -c "$hypertune/examples/quickstart.cpp" -o quickstart.o
${CXX:-g++} quickstart.o hypertune_core.o -o core_alone -lfmt -lsqlite3 -pthread
${CXX:-g++} quickstart.o hypertune_core.o hypertune_parts.o -o with_models -lfmt -lsqlite3 -pthread
for program in core_alone with_models; do
  rm -rf "$program.run"
  mkdir "$program.run"
  (cd "$program.run" && ../$program >result 2>notices)
  grep -q height= "$program.run/result"
done
test "$(grep -c 'this program has no models' core_alone.run/notices)" = 1
if grep -q 'no models' with_models.run/notices; then exit 1; fi

# The linker names the part that is missing.
compile -c "$here/names_parts.cpp" -o names_parts.o
if ${CXX:-g++} names_parts.o hypertune_core.o -o names_parts -lfmt -lsqlite3 -pthread 2>message; then
  echo "a program without the parts that it names was linked" >&2
  exit 1
fi
for part in analysis models schedulers; do
  grep -q "undefined reference to .include_hypertune_src_${part}_hpp_or_link_hypertune_hypertune" message
done

{ echo '#include <hypertune/src.hpp>'; cat "$hypertune/examples/quickstart.cpp"; } >quickstart.cpp
${CXX:-g++} -std=c++20 -Wall -Wextra -Werror -I"$hypertune/include" quickstart.cpp -o quickstart -lfmt -lsqlite3 -pthread
