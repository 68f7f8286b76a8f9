#include "support/test.hpp"

#include <hypertune/config/yaml.hpp>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace ht = hypertune;
namespace {

std::string complaint(const std::function<void()>& f) {
  try {
    f();
  } catch (const ht::Error& error) {
    CHECK(error.code() == ht::Errc::input);
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "no error";
}
std::string complaint(std::string_view text) {
  return complaint([&] { ht::load_yaml_text(text, "s.yaml"); });
}

}  // namespace

TEST_CASE("values are read with their types and places") {
  const auto node = ht::load_yaml_text(R"(
name: digits
samples: 30
big: 1e6
rate: 1.0e-3
quoted: "3"
norway: no
on: true
list: [1, 2.5, a]
nested:
  deep: {x: 7}
empty:
wait: 1h30m
room: 4GiB
)",
                                       "s.yaml");
  CHECK(node["name"].as<std::string>() == "digits");
  CHECK(node["samples"].as<int>() == 30);
  CHECK(node["samples"].as<double>() == 30);
  CHECK(node["big"].as<int>() == 1000000);
  CHECK(node["rate"].as<double>() == 1e-3);
  CHECK(node["quoted"].scalar() == ht::Value("3"));
  CHECK(node["norway"].scalar() == ht::Value("no"));
  CHECK(node["norway"].as<bool>() == false);
  CHECK(node["on"].as<bool>());
  CHECK(node["list"].items()[1].scalar() == ht::Value(2.5));
  CHECK(node["nested"]["deep"]["x"].path() == "nested.deep.x");
  CHECK(node["nested"]["deep"]["x"].where() == "s.yaml:11");
  CHECK(node["empty"].is_null());
  CHECK(node["wait"].duration() == 5400);
  CHECK(node["room"].bytes() == std::uint64_t{4} << 30U);
  CHECK(node.get<int>("absent", 7) == 7);
  CHECK(node["list"].texts() == std::vector<std::string>{"1", "2.5", "a"});
  CHECK(node["name"].texts() == std::vector<std::string>{"digits"});
  CHECK(ht::load_yaml_text("").is_null());
  CHECK(ht::load_yaml_text("# nothing\n").is_null());
}

TEST_CASE("plain scalars get the type of YAML 1.2's core schema") {
  const auto type = [](std::string text) { return ht::load_yaml_text("[" + text + "]").items()[0].scalar(); };
  CHECK(type("1") == ht::Value(std::int64_t{1}));
  CHECK(type("-7") == ht::Value(std::int64_t{-7}));
  CHECK(type("+7") == ht::Value(std::int64_t{7}));
  CHECK(type("1.") == ht::Value(1.0));
  CHECK(type(".5") == ht::Value(0.5));
  CHECK(type("1e-05") == ht::Value(1e-5));
  CHECK(type("1e20") == ht::Value(1e20));
  CHECK(type("9223372036854775807") == ht::Value(std::numeric_limits<std::int64_t>::max()));
  CHECK(type("-9223372036854775808") == ht::Value(std::numeric_limits<std::int64_t>::min()));
  CHECK_THROWS_WITH(type("99999999999999999999"),
                    "yaml:1: '[0]' is 99999999999999999999: whole numbers go from -9223372036854775808 to "
                    "9223372036854775807; write it in quotes to pass it on as a text");
  CHECK(type("'99999999999999999999'") == ht::Value("99999999999999999999"));
  CHECK(type("1.2.3") == ht::Value("1.2.3"));
  CHECK(type("2024-01-02") == ht::Value("2024-01-02"));
  CHECK(type("e") == ht::Value("e"));
  CHECK(type("inf") == ht::Value("inf"));
  CHECK(type("True") == ht::Value(true));
  CHECK(type("yes") == ht::Value("yes"));
  CHECK(type("'true'") == ht::Value("true"));
}

TEST_CASE("whole numbers are read exactly, however they are written") {
  const auto read = [](std::string text) { return ht::load_yaml_text("[" + text + "]").items()[0]; };
  CHECK(read("18446744073709551615").as<std::uint64_t>() == std::numeric_limits<std::uint64_t>::max());
  CHECK(read("9007199254740993.0").as<std::int64_t>() == 9007199254740993);
  CHECK(read("900719925474099.3e1").as<std::int64_t>() == 9007199254740993);
  CHECK(read("9223372036854775807").as<std::int64_t>() == std::numeric_limits<std::int64_t>::max());
  CHECK(read("-9223372036854775808").as<std::int64_t>() == std::numeric_limits<std::int64_t>::min());
  CHECK(read("1e6").as<int>() == 1000000);
  CHECK(read("120e-1").as<int>() == 12);
  CHECK(read("+7").as<int>() == 7);
  CHECK(read("-0").as<unsigned>() == 0);
  CHECK(read("0e9999").as<int>() == 0);
  CHECK(read("100000000000000000000").as<double>() == 1e20);
  for (const std::string text : {"0.5", "1e-1", "1e", ".", "e5", "-", "'7'", "1e99999", ".inf", "1e+-5"})
    CHECK_THROWS_WITH(read(text).as<int>(), ContainsSubstring("must be a whole number"));
  CHECK_THROWS_WITH(read("18446744073709551616").as<std::uint64_t>(),
                    ContainsSubstring("must be from 0 to 18446744073709551615, not 18446744073709551616"));
  CHECK_THROWS_WITH(read("-9223372036854775809").as<std::int64_t>(),
                    ContainsSubstring("must be from -9223372036854775808"));
  CHECK_THROWS_WITH(read("-1").as<unsigned>(), ContainsSubstring("must be from 0 to"));
  CHECK_THROWS_WITH(read("1e300").as<int>(), ContainsSubstring("not 1e300"));
  CHECK(read("1.10").written() == "1.10");
  CHECK(read("True").written() == "true");
}

TEST_CASE("complaints name the place, the key and what to do") {
  const auto node =
      ht::load_yaml_text("samples: many\nlist: [1]\nmap: {a: 1}\nhuge: 3000000000\nhalf: 0.5\nneg: -1\n", "s.yaml");
  CHECK(complaint([&] { node["samples"].as<int>(); }) == "s.yaml:1: 'samples' must be a whole number, not 'many'");
  CHECK(complaint([&] { node["half"].as<int>(); }) == "s.yaml:5: 'half' must be a whole number, not '0.5'");
  CHECK(complaint([&] { node["huge"].as<int>(); }) ==
        "s.yaml:4: 'huge' must be from -2147483648 to 2147483647, not 3000000000");
  CHECK(complaint([&] { node["neg"].as<unsigned>(); }) == "s.yaml:6: 'neg' must be from 0 to 4294967295, not -1");
  CHECK(complaint([&] { node["list"].as<double>(); }) == "s.yaml:2: 'list' must be a number, not a list");
  CHECK(complaint([&] { node["samples"].as<bool>(); }) == "s.yaml:1: 'samples' must be true or false, not 'many'");
  CHECK(complaint([&] { node["map"].items(); }) == "s.yaml:3: 'map' must be a list [a, b, …], not a map");
  CHECK(complaint([&] { node["list"].entries(); }) == "s.yaml:2: 'list' must be a map of key: value, not a list");
  CHECK(complaint([&] { node["list"]["x"]; }) == "s.yaml:2: 'list' must be a map of key: value, not a list");
  CHECK(complaint([&] { node["none"]; }) == "s.yaml:1: this file has no 'none': add it");
  CHECK(complaint([&] { node["map"].scalar(); }) == "s.yaml:3: 'map' must be a single value, not a map");
  CHECK(complaint([&] { node["samples"].duration(); }) ==
        "s.yaml:1: 'samples' must be a duration like 90s, 10m or 1h30m, not 'many'");
  CHECK(complaint([&] { node["samples"].bytes(); }) ==
        "s.yaml:1: 'samples' must be a size like 500MB or 4GiB, not 'many'");
}

TEST_CASE("a misspelt key gets the nearest suggestion") {
  const auto node = ht::load_yaml_text("name: x\nschedule:\n  type: asha\n  reducton: 3\nserach: {}\n", "s.yaml");
  CHECK(complaint([&] { node["schedule"].only({"type", "grace", "max", "reduction"}); }) ==
        "s.yaml:4: unknown key 'reducton' in 'schedule': did you mean 'reduction'?");
  CHECK(complaint([&] { node.only({"name", "schedule", "search", "stop"}); }) ==
        "s.yaml:5: unknown key 'serach' in this file: did you mean 'search'?");
  CHECK(complaint([&] { node.only({"name", "schedule"}); }) ==
        "s.yaml:5: unknown key 'serach' in this file; known here: name, schedule");
  CHECK_NOTHROW(node.only({"name", "schedule", "serach"}));
}

TEST_CASE("malformed files are refused with their line") {
  CHECK_THAT(complaint("a: [1, 2\nb: 3\n"), ContainsSubstring("s.yaml:"));
  CHECK_THAT(complaint("a: 1\n b: 2\n  c: 'x\n"), ContainsSubstring("not YAML"));
  CHECK(complaint("a: 1\nb: 2\na: 3\n") == "s.yaml:3: the key 'a' is given twice: remove one of the two");
  CHECK(complaint("a: 1\n---\nb: 2\n") == "s.yaml:3: a second document begins here: keep one to a file");
  CHECK(complaint("[a]: 1\n") == "s.yaml:1: a key must be a plain text, not a list or map");
  CHECK(complaint("a: !secret x\n") == "s.yaml:1: the tag '!secret' has no meaning here: remove it");
  CHECK(complaint(std::string("a: b\nc: \x04") + "d\n") ==
        "s.yaml:2: there is a control character (0x04): remove it, or write it as an escape in quotes");
  CHECK(complaint("a: b\nc: \xff\n") == "s.yaml:2: byte 0xff is not UTF-8: save the file as UTF-8");
  CHECK(complaint(std::string(2 << 20, 'a')) == "s.yaml:1: larger than 1 MiB: this is no configuration");
  CHECK_THAT(complaint(std::string(1000, '[')), ContainsSubstring("s.yaml:1: "));
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "- ";
  CHECK_THAT(complaint(deep + "x\n"), ContainsSubstring("nested more than 64 deep"));
}

TEST_CASE("aliases are followed, and bombs and loops of them refused") {
  const auto node = ht::load_yaml_text("base: &b {x: 1}\nother: *b\n", "s.yaml");
  CHECK(node["other"]["x"].as<int>() == 1);
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) bomb += (j != 0 ? ", *a" : "*a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  CHECK_THAT(complaint(bomb), ContainsSubstring("more than 100000 values"));
  CHECK_THAT(complaint("a: &a [*a]\n"), ContainsSubstring("inside the value that it stands for"));
}

TEST_CASE("files are read, and unreadable ones named") {
  const auto path = std::filesystem::temp_directory_path() / ("hypertune-yaml-" + std::to_string(::getpid()) + ".yaml");
  std::ofstream(path) << "a: 1\n";
  CHECK(ht::load_yaml_file(path)["a"].as<int>() == 1);
  CHECK(ht::load_yaml_file(path)["a"].file() == path.string());
  std::filesystem::remove(path);
  CHECK(complaint([&] { ht::load_yaml_file(path); }) ==
        path.string() + ": cannot be read: check the path and its permissions");
  CHECK_THAT(complaint([&] { ht::load_yaml_file(std::filesystem::temp_directory_path()); }),
             ContainsSubstring("directory"));
}

TEST_CASE("durations and sizes") {
  CHECK(ht::parse_duration("90") == 90.0);
  CHECK(ht::parse_duration("90s") == 90.0);
  CHECK(ht::parse_duration("10m") == 600.0);
  CHECK(ht::parse_duration("1h30m") == 5400.0);
  CHECK(ht::parse_duration("1d 2h") == 93600.0);
  CHECK(ht::parse_duration("1.5h") == 5400.0);
  CHECK(ht::parse_duration("250ms") == 0.25);
  CHECK(ht::parse_duration("0") == 0.0);
  for (const char* wrong : {"", " ", "m", "1x", "30m1h", "1h30", "1m1m", "-5", "1e3", "1..5s", "nan", "."})
    CHECK(!ht::parse_duration(wrong));
  CHECK(ht::parse_size("4096") == 4096U);
  CHECK(ht::parse_size("500MB") == 500'000'000U);
  CHECK(ht::parse_size("4GiB") == std::uint64_t{4} << 30U);
  CHECK(ht::parse_size("512Mi") == std::uint64_t{512} << 20U);
  CHECK(ht::parse_size("1.5 kB") == 1500U);
  CHECK(ht::parse_size("2G") == 2'000'000'000U);
  for (const char* wrong : {"", "GB", "4XB", "4GiBs", "-1", "1e9", "99999999TB"}) CHECK(!ht::parse_size(wrong));
}
