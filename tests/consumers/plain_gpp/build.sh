#!/bin/sh
# A project without a build system, with the warnings that projects have: its own files see declarations, and one file,
# which nothing but a new hypertune compiles again, has the definitions. Then the same in a single file, and what the
# linker says to a project that has forgotten them.
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

compile -O1 -c "$here/hypertune.cpp" -o hypertune.o
${CXX:-g++} $objects hypertune.o -o app -lfmt -lsqlite3 -pthread

{ echo '#include <hypertune/src.hpp>'; cat "$hypertune/examples/quickstart.cpp"; } >quickstart.cpp
${CXX:-g++} -std=c++20 -Wall -Wextra -Werror -I"$hypertune/include" quickstart.cpp -o quickstart -lfmt -lsqlite3 -pthread
