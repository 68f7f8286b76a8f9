#!/bin/sh
# The same project with hypertune's definitions in one file of its own, which nothing but a new hypertune compiles again.
set -e
hypertune=$1
here=$(dirname "$0")
objects=
for sources in "$here/hypertune.cpp" "$here"/../app/*.cpp; do
  name=$(basename "$sources" .cpp)
  ${CXX:-g++} -std=c++20 -DHYPERTUNE_COMPILED -Wall -Wextra -Werror -I"$hypertune/include" \
    -I"$hypertune/backends/local/include" -c "$sources" -o "$name.o"
  objects="$objects $name.o"
done
${CXX:-g++} $objects -o app -lfmt -lsqlite3 -pthread
# Without the macro a file would have definitions of its own: that of the definitions says so, where it can.
if printf '#include <hypertune/hypertune.hpp>\n#include <hypertune/src.hpp>\n' |
  ${CXX:-g++} -std=c++20 -I"$hypertune/include" -fsyntax-only -x c++ - 2>message; then
  echo "definitions were taken beside those of the headers" >&2
  exit 1
fi
grep -q -- -DHYPERTUNE_COMPILED message
