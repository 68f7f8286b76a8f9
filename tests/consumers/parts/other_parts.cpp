// The other parts of the definitions, for a program that uses them.
#include <hypertune/local/src.hpp>
#include <hypertune/src/analysis.hpp>
#include <hypertune/src/display.hpp>
#include <hypertune/src/groups.hpp>
#include <hypertune/src/models.hpp>
#include <hypertune/src/schedulers.hpp>
