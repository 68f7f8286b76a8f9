// What a program may have that used Boost.JSON before it used hypertune.
#include <boost/json/src.hpp>

#include <string>

std::string own_text(const boost::json::value& value) { return boost::json::serialize(value); }
