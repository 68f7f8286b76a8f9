// What stands for parameters in a command's arguments and in templates.
#include "local_support.hpp"

#include <hypertune/local/command.hpp>
#include <hypertune/local/command_line.hpp>
#include <hypertune/local/placeholder_text.hpp>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

namespace {

using Words = std::vector<std::string>;
using Values = local::CommandLine::Values;
const std::vector<std::string> names{"lr", "n", "opt", "fast", "group.x"};

std::string text_of(const std::string& source, const Values& values) {
  return local::PlaceholderText(source, names, "the text")(values).text;
}
std::string made_of(const std::string& source, const Values& values, const local::PlaceholderStyle& style) {
  return local::PlaceholderText(source, names, "t.in", style).without_inactive_lines(values);
}
const local::PlaceholderStyle at_signs{.open = "@", .close = "@", .strict = false};

}  // namespace

TEST_CASE("placeholders: values as languages write them") {
  const Values values{{"lr", 0.25}, {"n", std::int64_t{7}}, {"opt", "it's \"a\""}, {"fast", true}, {"group.x", false}};
  CHECK(text_of("{lr} {n} {opt} {fast} {group.x}", values) == "0.25 7 it's \"a\" true false");
  CHECK(text_of("{lr:json} {n:json} {opt:json} {fast:json}", values) == R"(0.25 7 "it's \"a\"" true)");
  CHECK(text_of("{lr:fortran} {opt:fortran} {fast:fortran} {group.x:fortran}", values) ==
        "0.25 'it''s \"a\"' .true. .false.");
  CHECK(text_of("{opt:python} {fast:python} {group.x:python}", values) == R"("it's \"a\"" True False)");
  CHECK(text_of("{opt:shell} {n:shell}", values) == R"('it'\''s "a"' 7)");
  CHECK(text_of("{lr:.3e} {lr:8.4f}| {n:05d} {n:+.1f} {lr:g}", values) == "2.500e-01   0.2500| 00007 +7.0 0.25");
  CHECK(text_of("{fast?-f}{group.x?-g}{fast?a:b}{group.x?a:b}{n?many:none}", values) == "-fabmany");
  CHECK(text_of("{lr|1} {n:json|none}", {{"lr", 0.25}}) == "0.25 none");
  CHECK_THROWS_WITH(text_of("{opt:d}", values), Catch::Contains("{opt:d} needs a whole number, but opt is"));
  CHECK_THROWS_WITH(text_of("{lr:d}", values), Catch::Contains("needs a whole number"));
  CHECK_THROWS_WITH(text_of("{opt:.3f}", values), Catch::Contains("needs a number"));
  CHECK_THROWS_WITH(text_of("{opt?-x}", values), Catch::Contains("needs true, false or a number"));
  for (const char* wrong : {"{lr:yaml}", "{lr:.e}", "{lr:}", "{lr:5}", "{lr:0.3x}", "{lr:s}"})
    CHECK_THROWS_WITH(text_of(wrong, values), Catch::Contains("has no format"));
  CHECK_THROWS_WITH(text_of("{fat?-x}", values), Catch::Contains("did you mean 'fast'"));
}

TEST_CASE("placeholders: what is not active") {
  const Values active{{"lr", 0.5}, {"n", std::int64_t{3}}, {"fast", true}}, none{{"fast", false}};
  const local::CommandLine line({"a", "--lr={lr}", "model.n={n}", "-O{n}", "--depth", "{n}", "{fast?--fast}",
                                 "{fast?--on:--off}", "sh -c '{n}'", "{n}"},
                                names, {{4, 6}});
  CHECK(line(active) == Words{"a", "--lr=0.5", "model.n=3", "-O3", "--depth", "3", "--fast", "--on", "sh -c '3'", "3"});
  // An option vanishes with its value; in a script, and where an argument's place counts, the text is empty.
  CHECK(line(none) == Words{"a", "--off", "sh -c ''", ""});
  // Nothing of a script is an option.
  const local::CommandLine script({"sh", "-c", "x={n};run $x", "a=${{y}}&&b={n}", "--x={n|0}", "-c {n}"}, names);
  CHECK(script(none) == Words{"sh", "-c", "x=;run $x", "a=${y}&&b=", "--x=0", "-c "});
  // A group with a text for the case stays.
  CHECK(local::CommandLine({"a", "--n", "{n|auto}", "b"}, names, {{1, 3}})(none) == Words{"a", "--n", "auto", "b"});
  CHECK(local::CommandLine({"a", "--n", "{n}", "--lr", "{lr}"}, names, {{1, 3}, {3, 5}})({{"lr", 0.5}}) ==
        Words{"a", "--lr", "0.5"});
  CHECK(local::CommandLine({"a", "--n", "{n}", "--lr", "{lr}", "-x", "{fast?1}", "--lr={lr}", "{lr}"}, names, {{3, 5}})
            .separate_options() == std::vector<std::pair<std::string, std::string>>{{"n", "--n"}});
}

TEST_CASE("templates: what is no placeholder stays as it is, and lines without a value are left out") {
  const Values values{{"lr", 0.5}, {"fast", true}};
  CHECK(made_of("mail a@b.c, d@e\n@@ -1 +1 @@\nprint @m1[id] @m2[gm]\n{\"x\": {}} @lr@@", values, at_signs) ==
        "mail a@b.c, d@e\n@@ -1 +1 @@\nprint @m1[id] @m2[gm]\n{\"x\": {}} 0.5@");
  CHECK(made_of("a = @lr@\nb = @n@\nc = @fast:fortran@ @n|0@\nd = @n@", values, at_signs) == "a = 0.5\nc = .true. 0\n");
  CHECK(made_of("variable x equal <<lr>> ${y} << 2", values, {.open = "<<", .close = ">>", .strict = false}) ==
        "variable x equal 0.5 ${y} << 2");
  CHECK_THROWS_WITH(
      made_of("one\ntwo @lrr@\n", values, at_signs),
      Catch::Contains("t.in:2: @lrr@ names 'lrr', which is no parameter of the space: did you mean 'lr'"));
  CHECK_THROWS_WITH(made_of("\n\n@lr:yaml@", values, at_signs), Catch::Contains("t.in:3: @lr:yaml@ has no format"));
}

TEST_CASE("a command's files are made from templates before it starts") {
  local::CommandOptions options;
  options.command = {"/bin/sh", "-c", R"(cat "$0" "$1"; echo '{{"loss": 1}}')", "{run.nml}", "{sub/c.json}"};
  options.objectives = {"loss"};
  options.files = {{.path = "run.nml", .text = "&run mode=@mode:fortran@ /\nlr=@lr@\n"},
                   {.path = "sub/c.json",
                    .text = R"({"mode": <<mode:json>>, "trial": <<trial>>})"
                            "\n",
                    .style = {.open = "<<", .close = ">>", .strict = false}}};
  Bench bench(std::make_shared<local::CommandProgram>(std::vector<std::string>{"mode", "lr"}, options));
  bench.launch(0, "m");
  bench.events.next<Reported>();
  bench.executor.perform(Continue{0, 0});
  bench.events.next<Finished>();
  std::ifstream in(bench.directory.path() / "trials/0/log");
  CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == "&run mode='m' /\n{\"mode\": \"m\", \"trial\": 0}\n");
  options.files[0].path = "mode";
  CHECK_THROWS_WITH(local::CommandProgram({"mode"}, options), Catch::Contains("'mode' is the name of a parameter"));
  for (const char* refused :
       {"log", "repetitions", "../x", "/x", "a//b", "checkpoints/x", "worker-1.log", ".x", "x/", ""}) {
    options.files[0].path = refused;
    INFO(refused);
    CHECK_THROWS_WITH(local::CommandProgram({"mode", "lr"}, options), Catch::Contains("of the trial: "));
  }
}

TEST_CASE("a value that does not fit its placeholder fails the trial with the reason, once") {
  local::CommandOptions options;
  options.command = {"/bin/true", "--n={mode:05d}"};
  Bench bench(std::make_shared<local::CommandProgram>(std::vector<std::string>{"mode", "lr"}, options));
  bench.launch(0, "m");
  const auto failed = bench.events.next<Failed>();
  CHECK_THAT(failed.cause.text, Catch::Contains("{mode:05d} needs a whole number, but mode is 'm'"));
  CHECK_FALSE(failed.cause.retry);
}
