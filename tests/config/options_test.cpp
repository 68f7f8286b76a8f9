// Options that are described once: what is checked, read and said of them.
#include "support/test.hpp"

#include <hypertune/config/algorithms.hpp>
#include <hypertune/hosts/host_options.hpp>
#include <hypertune/schedule/asha.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

using namespace hypertune;

namespace {

enum class Colour : std::uint8_t { red, green };

struct Paint {
  static constexpr const char* type = "paint";
  int coats = 2;
  double thinner = 0.5;
  std::optional<int> limit{};
  Seconds drying = 5400;
  std::uint64_t room = 1000;
  Colour colour = Colour::green;
  bool varnish = false;
  std::string maker = "any";
  std::filesystem::path folder{};
  std::vector<std::string> walls{};

  static void describe(auto& self, auto&& option) {
    option("coats", self.coats, at_least(1), "layers");
    option("thinner", self.thinner, above(0).at_most(2).or_zero(), "part");
    option("limit", self.limit, at_least(3), "layers, at most");
    option("drying", self.drying, above(0).in(Bounds::Unit::seconds), "between layers");
    option("room", self.room, at_least(0).in(Bounds::Unit::bytes), "for colours");
    option("colour", self.colour, {"red", "green"}, "of the last layer");
    option("varnish", self.varnish, "at the end");
    option("maker", self.maker, "of the paint");
    option("folder", self.folder, "of the receipt");
    option("walls", self.walls, "to paint");
  }
  void check() const {
    if (limit && coats > *limit) throw OptionError(type, "coats", detail::format("is {}, above the limit", coats));
  }
};

Paint read(const std::string& text) {
  Paint paint;
  const Node node = load_yaml_text(text, "p.yaml");
  detail::checked(node, [&] {
    read_options(node, {"type"}, paint);
    check_options(paint);
    return 0;
  });
  return paint;
}
std::string complaint(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    CHECK(error.code() == Errc::input);
    return error.what();
  }
  return "no error";
}
std::string complaint(const Paint& paint) {
  try {
    check_options(paint);
  } catch (const OptionError& error) {
    CHECK(error.code() == Errc::usage);
    return error.option() + ": " + error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("described options are read from a map, whichever kind they are") {
  const auto paint = read(
      "coats: 3\nthinner: 1.5\nlimit: 4\ndrying: 2h\nroom: 2KiB\ncolour: red\nvarnish: true\nmaker: me\nfolder: "
      "/tmp/x\n"
      "walls: [north, south]\n");
  CHECK(paint.coats == 3);
  CHECK(paint.thinner == 1.5);
  CHECK(paint.limit == 4);
  CHECK(paint.drying == 7200);
  CHECK(paint.room == 2048);
  CHECK(paint.colour == Colour::red);
  CHECK(paint.varnish);
  CHECK(paint.maker == "me");
  CHECK(paint.folder == "/tmp/x");
  CHECK(paint.walls == std::vector<std::string>{"north", "south"});
  const auto plain = read("{type: paint, walls: north}");
  CHECK(plain.coats == 2);
  CHECK_FALSE(plain.limit);
  CHECK(plain.walls == std::vector<std::string>{"north"});
}

TEST_CASE("a wrong option is named in C++, and its own line in a file") {
  CHECK(complaint(Paint{.coats = 0}) == "coats: paint: coats is 0, but must be at least 1");
  CHECK(complaint(Paint{.thinner = 3}) == "thinner: paint: thinner is 3, but must be 0 or above 0 and at most 2");
  CHECK(complaint(Paint{.thinner = 0}) == "no error");
  CHECK(complaint(Paint{.thinner = std::numeric_limits<double>::quiet_NaN()}).starts_with("thinner: "));
  CHECK(complaint(Paint{.limit = 2}) == "limit: paint: limit is 2, but must be at least 3");
  CHECK(complaint(Paint{.drying = std::numeric_limits<double>::infinity()}) ==
        "drying: paint: drying is inf, but must be above 0 s");
  CHECK(complaint(Paint{.coats = 9, .limit = 5}) == "coats: paint: coats is 9, above the limit");
  CHECK(complaint("varnish: true\ncoats: 0\n") == "p.yaml:2: paint: coats is 0, but must be at least 1");
  CHECK(complaint("limit: 3\nmaker: me\ncoats: 4\n") == "p.yaml:3: paint: coats is 4, above the limit");
  CHECK(complaint("maker: me\ncoats: many\n") == "p.yaml:2: 'coats' must be a whole number, not 'many'");
  CHECK(complaint("maker: me\ncolour: gren\n") ==
        "p.yaml:2: 'colour' cannot be 'gren': did you mean 'green'?; there are red, green");
  CHECK(complaint("maker: me\ncoat: 2\n") == "p.yaml:2: unknown key 'coat' in this file: did you mean 'coats'?");
}

TEST_CASE("what options say of themselves") {
  std::vector<std::string> lines;
  for (const auto& option : options_of(Paint{}))
    lines.push_back(detail::format("{}; {}; {}; {}", option.name, option.type, option.fallback, option.text));
  CHECK(lines == std::vector<std::string>{
                     "coats; whole number, at least 1; 2; layers",
                     "thinner; number, 0 or above 0 and at most 2; 0.5; part",
                     "limit; whole number, at least 3; ; layers, at most",
                     "drying; duration, above 0 s; 90m; between layers",
                     "room; size, at least 0; 1000; for colours",
                     "colour; `red`, `green`; green; of the last layer",
                     "varnish; true, false; false; at the end",
                     "maker; text; any; of the paint",
                     "folder; path; ; of the receipt",
                     "walls; word or list; ; to paint",
                 });
}

TEST_CASE("an option whose initial value stands for none has no default, but is read") {
  const auto read_host = [](const char* text) { return options_from<HostOptions>(load_yaml_text(text, "h.yaml")); };
  for (const auto& option : options_of(HostOptions{})) CHECK(option.fallback.empty());
  const auto host = read_host("{slots: 2, memory: 2KiB, custom: {licence: 1.5}}");
  CHECK(host.slots == 2);
  CHECK(host.memory == 2048);
  CHECK(host.custom == std::map<std::string, double>{{"licence", 1.5}});
  CHECK_THROWS_WITH(read_host("slots: 0"), "h.yaml:1: 'slots' must be 1 or more, not 0");
  CHECK_THROWS_WITH(read_host("slot: 1"), ContainsSubstring("unknown key 'slot'"));
}

TEST_CASE("algorithms in a file: each mistake has its own line, and an old key says its new name") {
  const auto wrong = [](const std::string& text) {
    try {
      const Node node = load_yaml_text(text, "s.yaml");
      if (node.has("schedule"))
        scheduler_from_yaml(node["schedule"]);
      else
        searcher_from_yaml(node["search"]);
    } catch (const Error& error) { return std::string(error.what()); }
    return std::string("no error");
  };
  CHECK(wrong("schedule:\n  type: asha\n  max_steps: 9\n  grace_period: 0\n") ==
        "s.yaml:4: asha: grace_period is 0, but must be at least 1");
  CHECK(wrong("schedule:\n  type: asha\n  grace_period: 9\n  max_steps: 3\n") ==
        "s.yaml:4: asha: max_steps is 3, but must be at least grace_period, 9");
  CHECK(wrong("schedule:\n  type: asha\n  grace_period: 100\n").starts_with("s.yaml:2: asha: max_steps is 81, but"));
  CHECK(wrong("schedule:\n  type: asha\n  grace: 1\n") == "s.yaml:3: 'grace' is now 'grace_period'");
  CHECK(wrong("schedule:\n  type: pbt\n  max: 9\n") == "s.yaml:3: 'max' is now 'max_steps'");
  CHECK(wrong("search:\n  type: tpe\n  startup: 9\n") == "s.yaml:3: 'startup' is now 'startup_trials'");
  CHECK(wrong("search:\n  type: random\n  limit: 9\n") == "s.yaml:3: 'limit' is now 'max_concurrent'");
  CHECK(wrong("search:\n  type: tpe\n  interval: 9\n").starts_with("s.yaml:3: unknown key 'interval'"));
  CHECK(wrong("search:\n  type: tpe\n  repeat: 0\n") == "s.yaml:3: search: repeat is 0, but must be at least 1");
  CHECK(wrong("search:\n  type: bohb\n  reduction_factor: 1\n")
            .starts_with("s.yaml:3: hyperband: reduction_factor is 1"));
  CHECK(wrong("schedule:\n  type: hyper_sched\n  max_steps: 2\n  deadline: 0s\n") ==
        "s.yaml:4: hyper_sched: deadline is 0, but must be above 0 s");
}
