// Boost.JSON's definitions, once for all tests of this folder.
#include <boost/json/src.hpp>
