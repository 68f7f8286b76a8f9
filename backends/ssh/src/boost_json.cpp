// Boost.JSON, compiled once: what host commands print is read with it.
#include <boost/json/src.hpp>
