#!/bin/sh
# A project without a build system: the headers and three libraries, with the warnings that projects have.
set -e
hypertune=$1
app=$(dirname "$0")/../app
for sources in "$app"/*.cpp "$hypertune/examples/quickstart.cpp"; do
  name=$(basename "$sources" .cpp)
  ${CXX:-g++} -std=c++20 -O2 -Wall -Wextra -Werror -I"$hypertune/include" -c "$sources" -o "$name.o"
done
objects=
for sources in "$app"/*.cpp; do objects="$objects $(basename "$sources" .cpp).o"; done
${CXX:-g++} $objects -o app -lfmt -lsqlite3 -pthread
