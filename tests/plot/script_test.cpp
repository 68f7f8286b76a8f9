// The engine that draws charts: modules, questions, errors, bounds.
#include "support/test.hpp"

#include <hypertune/error.hpp>

#include <script.hpp>

#include <chrono>
#include <map>
#include <optional>
#include <string>

using namespace hypertune;
using plot::Script;

namespace {

Script::Modules of(std::map<std::string, std::string> files) {
  return [files = std::move(files)](std::string_view path) -> std::optional<std::string> {
    const auto found = files.find(std::string(path));
    return found == files.end() ? std::nullopt : std::optional(found->second);
  };
}

std::string echo(const std::string& text) { return "<" + text + ">"; }

std::string result(const std::string& expression) {
  Script script(of({}), echo);
  return script.call("globalThis.answer = String(" + expression + ");", "test.js");
}

}  // namespace

TEST_CASE("a script has modules, which find each other, and what ran before") {
  Script script(of({{"/a.js", "import {two} from './b/c.js';\nexport const three = two + 1;\n"},
                    {"/b/c.js", "import {one} from '../d.js';\nexport const two = one + 1;\n"},
                    {"/d.js", "export const one = globalThis.first;\n"}}),
                echo);
  script.run("var first = 1;", "first.js");
  CHECK(script.call("import {three} from './a.js'; globalThis.answer = ask(`${three} größe \\u{1F600}`);",
                    "start.js") == "<3 größe \U0001F600>");
}

TEST_CASE("a script reaches nothing but what it is given") {
  for (const char* name : {"std", "os", "require", "process", "fetch", "XMLHttpRequest", "Worker", "setTimeout",
                           "print", "console", "document", "window", "scriptArgs"})
    CHECK(result(std::string("typeof ") + name) == "undefined");
  Script script(of({}), echo);
  CHECK_THROWS_WITH(script.call("import * as os from 'os'; globalThis.answer = '';", "start.js"),
                    ContainsSubstring("there is no module 'os'"));
}

TEST_CASE("faults of a script are errors that say where, and a Problem is a person's") {
  Script script(of({{"/broken.js", "export const = 1;"}}), echo);
  CHECK_THROWS_WITH(script.run("nonsense(;", "one.js"), ContainsSubstring("'one.js' has a fault: SyntaxError"));
  CHECK_THROWS_WITH(script.call("import './broken.js';", "start.js"), ContainsSubstring("SyntaxError"));
  CHECK_THROWS_WITH(script.call("undefined.x;", "start2.js"), ContainsSubstring("TypeError"));
  CHECK_THROWS_WITH(script.call("throw 7;", "start3.js"), ContainsSubstring("7"));
  CHECK_THROWS_WITH(script.call("globalThis.answer = 7;", "start4.js"), ContainsSubstring("has no answer"));
  try {
    script.call("const e = new Error('a {} b'); e.name = 'Problem'; throw e;", "start5.js");
    FAIL("it was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::input);
    CHECK(std::string(error.what()) == "a {} b");
  }
}

TEST_CASE("what a question throws comes out as it is") {
  Script script(of({}), [](const std::string& text) -> std::string { fail(Errc::busy, "no {} today", text); });
  try {
    script.call("globalThis.answer = ask('bread');", "start.js");
    FAIL("it was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::busy);
    CHECK(std::string(error.what()) == "no bread today");
  }
}

TEST_CASE("a script that does not end, or takes too much, is ended") {
  {
    Script script(of({}), echo, std::chrono::seconds(1));
    CHECK_THROWS_WITH(script.call("for (;;) {}", "start.js"), ContainsSubstring("takes too long"));
  }
  CHECK_THROWS_AS(result("(function f() { return f() + 1; })()"), Error);
  CHECK_THROWS_AS(result("'x'.repeat(2 ** 28).repeat(8)"), Error);
}
