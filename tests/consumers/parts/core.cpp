// The file of a program that has the core of hypertune's definitions: the others are compiled as if there were a library.
#include <hypertune/src/core.hpp>
