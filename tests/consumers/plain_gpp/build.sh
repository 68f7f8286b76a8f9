#!/bin/sh
# A project without a build system: the headers and three libraries.
set -e
hypertune=$1
app=$(dirname "$0")/../app
${CXX:-g++} -std=c++20 -I"$hypertune/include" "$app"/*.cpp -o app -lfmt -lsqlite3 -pthread
