// The end of a log, as a message quotes it.
#include "pod_log.hpp"

#include "support/test.hpp"

#include <string>

using namespace hypertune;
using k8s::end_of_text;

TEST_CASE("the end of a log is one line, of whole lines, and has a bound") {
  CHECK(end_of_text("").empty());
  CHECK(end_of_text("\n \n\n").empty());
  CHECK(end_of_text("cannot begin\n") == "cannot begin");
  CHECK(end_of_text("\x1b[31mred\r\n\n  usage: x\nlast") == "[31mred |   usage: x | last");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "line " + std::to_string(i) + "\n";
  const auto end = end_of_text(many);
  CHECK(end.size() <= 800);
  CHECK(end.ends_with("line 998 | line 999"));
  CHECK(end.starts_with("line "));
  CHECK(end_of_text(std::string(5000, 'x')).size() <= 300);
}
