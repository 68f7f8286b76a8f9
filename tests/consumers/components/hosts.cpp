// Part of the library reads JSON here, and so does the program.
#include <hypertune/remote/host_list.hpp>

#include <boost/json.hpp>

#include <string>

#ifdef WITHOUT_OWN_JSON
static std::string own_text(const boost::json::value& value) { return boost::json::serialize(value); }
#else
std::string own_text(const boost::json::value& value);
#endif

int main() {
  const auto hosts = hypertune::remote::parse_hosts(R"(["a", {"name": "b", "slots": 2}])", "here");
  return hosts.size() == 2 && own_text(boost::json::parse("[1, 2]")) == "[1,2]" ? 0 : 1;
}
