// Boost.JSON, compiled once: Debian has it as headers, too. Alone in its archive, hypertune::boost_json.
#include <boost/json/src.hpp>
