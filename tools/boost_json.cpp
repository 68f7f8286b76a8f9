// Boost.JSON, compiled here once: Debian has it header-only too.
#include <boost/json/src.hpp>
