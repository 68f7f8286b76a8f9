// The end of a log, as a message quotes it.
#include "pod_log.hpp"

#include "pod_dialer.hpp"
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

TEST_CASE("a program that is there and is not found lacks what starts it") {
  const auto text = k8s::explain_exec("exec: line 6: /hypertune/cache/bin/0f3a/hypertune: not found\nexit code 127");
  CHECK_THAT(text, ContainsSubstring("its image lacks what starts the program") && ContainsSubstring("`ldd`") &&
                       ContainsSubstring("hypertune: not found | exit code 127"));
  CHECK_THAT(k8s::explain_exec("/hypertune/cache/bin/0f3a/hypertune: cannot execute: required file not found"),
             ContainsSubstring("its image lacks what starts the program"));
  const std::string library =
      "/hypertune/cache/bin/0f3a/hypertune: error while loading shared libraries: libfmt.so.9: "
      "cannot open shared object file: No such file or directory";
  CHECK(k8s::explain_exec(library) == library);
  CHECK(k8s::explain_exec("/app/train: not found") == "/app/train: not found");
  CHECK(k8s::classify_exec("/hypertune/cache/bin/0f3a/hypertune: not found\nexit code 127") ==
        remote::FailureClass::permanent);
}

TEST_CASE("a command that is refused as the pod's container has ended is no fault of the command") {
  for (const char* said :
       {"the command could not be run: error executing command in container: failed to exec in container: failed to "
        "create exec \"f05ecb47\": container not created: not found",
        "the command could not be run: error executing command in container: failed to exec in container: failed to "
        "create exec \"029838a9\": task 84e6d5df: not found",
        "the command could not be run: container is not created or running"})
    CHECK(k8s::classify_exec(said) == remote::FailureClass::transient);
}
