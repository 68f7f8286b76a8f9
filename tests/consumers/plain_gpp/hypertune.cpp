// The one file of a program that has hypertune's definitions: the others are compiled as if there were a library.
#include <hypertune/src.hpp>
