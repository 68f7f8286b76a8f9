// What a person asks of a driver that runs, from another terminal: stop, pause, continue, add.
#include "history.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/tune/detail/requests/control.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace ht = hypertune;
using Kind = ht::ControlRequest::Kind;

namespace {

struct Config {
  double x = 0;
};
const auto line = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(0.0, 1.0)));

std::atomic<bool> may_end{false};

/// Trains until it may end; a step takes a millisecond.
ht::Training work(Config config, ht::Context& context) {
  context.checkpoints([](ht::CheckpointWriter& out) { std::ofstream(out.file("nothing")) << 1; },
                      [](const ht::Checkpoint&) {});
  for (int step = context.next_step(); !may_end || step < 2; ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    co_yield ht::report("loss", config.x).at(step);
  }
}

template <class Condition>
void await(Condition condition, const char* what) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) FAIL("waited in vain for " << what);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

/// An experiment that runs on a thread of its own.
struct Running {
  explicit Running(ht::Options o) : directory(o.output) {
    may_end = false;
    tuner = std::make_unique<ht::Tuner>(
        line.search_space(), ht::make_program<Config>(ht::detail::decoder(line), work, "loss"), std::move(o));
    ended = std::async(std::launch::async, [this] { return tuner->run(); });
  }
  ~Running() {
    may_end = true;
    if (ended.valid()) tuner->stop_now();
  }
  void await_steps(ht::TrialId trial, int steps) {
    await(
        [&] {
          const auto results = read();
          return results.size() > static_cast<std::size_t>(trial) && results.trial(trial).steps >= steps;
        },
        "steps");
  }
  void await_state(ht::TrialId trial, ht::TrialState state) {
    await([&] { return read().trial(trial).state == state; }, ht::to_string(state));
  }
  ht::Results read() const {
    try {
      return ht::Results::read(directory);
    } catch (const ht::Error&) { return {}; }  // has just begun
  }
  ht::ControlAnswer ask(Kind kind, std::vector<ht::TrialId> trials = {}, ht::Params params = {}) const {
    return ht::ask_driver(directory, {.kind = kind, .trials = std::move(trials), .params = std::move(params)});
  }
  ht::Results end() {
    may_end = true;
    return leave();
  }
  /// Waits for its end, whatever that is of, and gives the folder free.
  ht::Results leave() {
    auto results = ended.get();
    tuner.reset();
    return results;
  }

  std::filesystem::path directory;
  std::unique_ptr<ht::Tuner> tuner;
  std::future<ht::Results> ended;
};

ht::Options options(const TemporaryDirectory& directory) {
  ht::Options o;
  o.metric = "loss";
  o.search = ht::Random{};
  o.samples = 4;
  o.concurrency = 2;
  o.resources = {.cpus = 0};
  o.output = directory.path() / "run";
  o.display = ht::Display::quiet;
  o.handle_signals = false;
  o.checkpoint = {.every = 1, .keep = 1};
  return o;
}

}  // namespace

TEST_CASE("control: a trial is stopped for good, whether it runs, waits or rests") {
  const TemporaryDirectory directory;
  auto o = options(directory);
  Running run(o);
  run.await_steps(1, 1);
  CHECK(run.ask(Kind::stop, {0}).text == "trial 0 is told to stop");
  run.await_state(0, ht::TrialState::stopped);
  run.await_steps(2, 1);  // its slot is free for the next
  CHECK(run.ask(Kind::pause, {1}).done);
  run.await_state(1, ht::TrialState::paused);
  CHECK(run.ask(Kind::stop, {1}).text == "trial 1 is stopped");
  const auto refused = run.ask(Kind::stop, {0, 99, 2});
  CHECK_FALSE(refused.done);  // … and what can be done is done
  CHECK(refused.text ==
        "trial 0 has ended already: it is stopped\nthere is no trial 99: there are 4\ntrial 2 is told to stop");
  const auto results = run.end();
  REQUIRE(results.size() == 4);
  for (const ht::TrialId trial : {0, 1, 2}) {
    CHECK(results.trial(trial).state == ht::TrialState::stopped);
    CHECK(results.trial(trial).cause->text == "stopped by the user");
  }
  CHECK(results.trial(3).state == ht::TrialState::completed);
  // So it stays.
  o.resume = true;
  const auto reports = results.experiment().reports;
  CHECK(ht::tune(line, work, o).experiment().reports == reports);
}

TEST_CASE("control: a trial that is paused gives its slot to another one and goes on when it is continued") {
  const TemporaryDirectory directory;
  const bool can_save = GENERATE(true, false);
  INFO("can save " << can_save);
  auto o = options(directory);
  if (!can_save) o.checkpoint = {};
  o.concurrency = 1;
  o.samples = 2;
  Running run(o);
  run.await_steps(0, 3);
  CHECK(run.ask(Kind::proceed, {0}).text == "trial 0 was not paused by hand: it is running");
  CHECK(run.ask(Kind::pause, {0}).text == "trial 0 pauses at its next report");
  run.await_state(0, ht::TrialState::paused);
  const int steps = run.read().trial(0).steps;
  run.await_steps(1, 3);
  CHECK(run.read().trial(0).steps == steps);
  CHECK(run.tuner->why_pending(0) == "paused by hand: it waits for `hypertune continue`");
  const auto why = run.ask(Kind::why, {1, 0, 99});  // the others run, or are not there
  CHECK(why.done);
  CHECK(why.text == "trial 0: paused by hand: it waits for `hypertune continue`");
  CHECK(run.ask(Kind::why).text.empty());
  CHECK(run.ask(Kind::proceed, {0}).done);
  CHECK(run.tuner->why_pending(0) == "waits for a running trial to leave: concurrency is 1");
  CHECK(run.ask(Kind::proceed, {0}).text == "trial 0 goes on as soon as there is room");
  may_end = true;
  const auto results = run.end();
  CHECK(results.count(ht::TrialState::completed) == 2);
  std::map<std::pair<ht::TrialId, int>, int> seen;
  for (const auto& record : support::records_of(o.output))
    if (const auto* r = std::get_if<ht::record::TrialReported>(&record.what)) CHECK(++seen[{r->trial, r->step}] == 1);
}

TEST_CASE("control: an experiment whose last trials are paused waits, and a resumption lets them go on") {
  const TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 2;
  Running run(o);
  run.await_steps(0, 1);
  run.await_steps(1, 1);
  CHECK(run.ask(Kind::pause).text == "no trial starts; 2 running trials pause at the next report");
  run.await_state(0, ht::TrialState::paused);
  run.await_state(1, ht::TrialState::paused);
  CHECK_THAT(run.ask(Kind::proceed, {0}).text, ContainsSubstring("the whole experiment is paused"));
  SECTION("continued") {
    const auto reports = run.read().experiment().reports;
    CHECK(run.ask(Kind::proceed).text == "goes on: 2 trials had paused");
    await([&] { return run.read().experiment().reports > reports; }, "reports");
    CHECK(run.end().count(ht::TrialState::completed) == 2);
  }
  SECTION("left, and resumed") {
    CHECK(run.ask(Kind::leave).done);
    const auto left = run.leave();
    CHECK(left.experiment().interrupted);
    CHECK(left.count(ht::TrialState::paused) == 2);
    o.resume = true;
    may_end = true;
    CHECK(ht::tune(line, work, o).count(ht::TrialState::completed) == 2);
  }
}

TEST_CASE("control: an experiment that is left can be resumed") {
  const TemporaryDirectory directory;
  auto o = options(directory);
  const bool at_once = GENERATE(false, true);
  Running run(o);
  run.await_steps(1, 1);
  CHECK(run.ask(at_once ? Kind::leave_now : Kind::leave).done);
  CHECK(run.leave().experiment().interrupted);
  CHECK_THROWS_WITH(run.ask(Kind::leave), ContainsSubstring("nobody runs the experiment"));
  CHECK_FALSE(std::filesystem::exists(o.output / "control"));
  o.resume = true;
  may_end = true;
  CHECK(ht::tune(line, work, o).count(ht::TrialState::completed) == 4);
}

TEST_CASE("control: configurations are added, and count as samples as long as there are any") {
  const TemporaryDirectory directory;
  auto o = options(directory);
  o.concurrency = 3;
  o.samples = 3;
  Running run(o);
  run.await_steps(2, 1);
  ht::Params params;
  params.set("x", 0.25);
  const auto added = run.ask(Kind::add, {}, params);
  CHECK(added.done);
  CHECK(added.text == "trial 3 is to try x=0.25");
  CHECK(run.ask(Kind::proceed, {3}).text == "trial 3 was not paused by hand: it is pending");
  params.set("x", 7.0);
  const auto refused = run.ask(Kind::add, {}, params);
  CHECK_FALSE(refused.done);
  CHECK_THAT(refused.text, ContainsSubstring("x"));
  params.set("x", 0.5);
  params.set("y", 0.5);
  CHECK_FALSE(run.ask(Kind::add, {}, params).done);
  CHECK_FALSE(run.ask(Kind::add).done);
  auto results = run.end();
  REQUIRE(results.size() == 4);
  CHECK(results.trial(3).params.get<double>("x") == 0.25);
  CHECK(results.trial(3).state == ht::TrialState::completed);
  o.resume = true;
  CHECK(ht::tune(line, work, o).size() == 4);
}

TEST_CASE("control: to the scheduler, a trial that a person pauses runs") {
  struct Seen {
    std::atomic<int> pauses{0}, resumptions{0};
    std::atomic<std::size_t> max_paused{0};
  };
  struct Watchful {
    std::shared_ptr<Seen> seen = std::make_shared<Seen>();
    ht::Decision on_report(const ht::Progress&) const { return ht::Decision::proceed; }
    void on_pause(ht::TrialId) const { ++seen->pauses; }
    void on_resume(ht::TrialId) const { ++seen->resumptions; }
    ht::Choice choose_next(const ht::Pool& pool) const {
      seen->max_paused = std::max<std::size_t>(seen->max_paused, pool.paused);
      return pool.more_trials ? ht::Choice::start_new() : ht::Choice::wait();
    }
  };
  const TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 2;
  o.concurrency = 1;
  const Watchful watchful;
  o.schedule = watchful;
  {
    Running run(o);
    run.await_steps(0, 1);
    CHECK(run.ask(Kind::pause, {0}).done);
    run.await_steps(1, 1);
    CHECK(run.read().trial(0).state == ht::TrialState::paused);
    CHECK(run.ask(Kind::proceed, {0}).done);
    CHECK(run.end().count(ht::TrialState::completed) == 2);
  }
  CHECK(watchful.seen->pauses == 0);
  CHECK(watchful.seen->resumptions == 0);
  CHECK(watchful.seen->max_paused == 0);
  o.resume = true;  // the replay tells it the same
  CHECK(ht::tune(line, work, o).count(ht::TrialState::completed) == 2);
  CHECK(watchful.seen->pauses == 0);
  CHECK(watchful.seen->resumptions == 0);
}

TEST_CASE("control: the pipe is its owner's alone, and what is no request does no harm") {
  const TemporaryDirectory directory;
  auto o = options(directory);
  Running run(o);
  run.await_steps(0, 1);
  struct stat info{};
  REQUIRE(::lstat((o.output / "control").c_str(), &info) == 0);
  CHECK(S_ISFIFO(info.st_mode));
  CHECK((info.st_mode & 0777) == 0600);

  const auto send = [&](const std::string& bytes) {
    const int fd = ::open((o.output / "control").c_str(), O_WRONLY | O_NONBLOCK);
    REQUIRE(fd >= 0);
    CHECK(::write(fd, bytes.data(), bytes.size()) > 0);
    ::close(fd);
  };
  const auto request = [](const std::string& to) {
    return ht::detail::encode_request({.kind = Kind::leave, .trials = {1}}, to);
  };
  send("nonsense\n");
  send(std::string(30000, '\xFF'));
  send(std::string(4000, '\0'));
  const std::string whole = request(".answer-1");
  for (std::size_t size = 1; size < whole.size(); ++size) send(whole.substr(0, size));
  for (std::size_t at = 2; at < whole.size(); ++at) {
    std::string spoilt = whole;
    spoilt[at] = static_cast<char>(spoilt[at] ^ 0x55);
    if (spoilt.find(".answer-") == std::string::npos) send(spoilt);
  }
  // Answers go to pipes of this folder that this program made, and nowhere else.
  std::ofstream(o.output / ".answer-1") << "kept";
  std::ofstream(directory.path() / "outside") << "kept";
  const auto harmless = [](const std::string& to) {
    return ht::detail::encode_request({.kind = Kind::stop, .trials = {99}}, to);
  };
  for (const char* to : {".answer-1", "../outside", "outside", "/dev/stdout", ".answer-1/../../outside", ""})
    send(harmless(to));
  CHECK(run.ask(Kind::stop, {99}).text.starts_with("there is no trial 99"));  // it still answers
  for (const auto& path : {o.output / ".answer-1", directory.path() / "outside"}) {
    std::string text;
    std::getline(std::ifstream(path), text);
    CHECK(text == "kept");
  }
  std::filesystem::remove(o.output / ".answer-1");
  std::vector<ht::TrialId> many(5000, 1);
  CHECK_THROWS_WITH(run.ask(Kind::stop, many), ContainsSubstring("name fewer trials at a time"));
  std::size_t left = 0;
  for (const auto& entry : std::filesystem::directory_iterator(o.output))
    left += entry.path().filename().string().starts_with(".answer-") ? 1 : 0;
  CHECK(left == 0);
  CHECK(run.end().count(ht::TrialState::completed) == 4);
}

TEST_CASE("control: what is left of a driver that was killed, or stands in the way, is dealt with") {
  const TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 1;
  std::filesystem::create_directories(o.output);
  CHECK_THROWS_WITH(ht::ask_driver(o.output, {}), ContainsSubstring("there is no experiment in"));
  SECTION("a pipe") {
    REQUIRE(::mkfifo((o.output / "control").c_str(), 0666) == 0);
    Running run(o);
    run.await_steps(0, 1);
    CHECK(run.ask(Kind::stop, {0}).done);
    CHECK(run.end().count(ht::TrialState::stopped) == 1);
  }
  SECTION("a file of somebody's own") {
    std::ofstream(o.output / "control") << "kept";
    Running run(o);
    run.await_steps(0, 1);
    CHECK_THROWS_WITH(run.ask(Kind::stop, {0}), ContainsSubstring("does not listen here"));
    CHECK(run.end().count(ht::TrialState::completed) == 1);
    std::string text;
    std::getline(std::ifstream(o.output / "control"), text);
    CHECK(text == "kept");
  }
}

TEST_CASE("control: the pipes for answers of who was killed while it asked are removed") {
  const TemporaryDirectory directory;
  const auto pipe_of = [&](pid_t pid) { return directory.path() / (".answer-" + std::to_string(pid) + "-1"); };
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  REQUIRE(::waitpid(gone, nullptr, 0) == gone);
  const auto make = [&](pid_t pid) { REQUIRE(::mkfifo(pipe_of(pid).c_str(), 0600) == 0); };
  make(gone);
  make(::getpid());
  {
    const ht::ControlPipe control(directory.path(), [](const ht::ControlRequest&) { return ht::ControlAnswer{}; });
    CHECK_FALSE(std::filesystem::exists(pipe_of(gone)));
    make(gone);
  }
  CHECK_FALSE(std::filesystem::exists(pipe_of(gone)));
  CHECK(std::filesystem::exists(pipe_of(::getpid())));
}

TEST_CASE("control: requests are read as they were written") {
  ht::ControlRequest request{.kind = Kind::add, .trials = {0, 5, 1'000'000'000'000}};
  request.params.set("lr", 0.1);
  request.params.set("name", std::string("a\0b", 3));
  request.params.set("deep", true);
  request.params.set("n", std::int64_t{-3});
  const auto [to, read] = ht::detail::decode_request(
      ht::detail::encode_request(request, ".answer-7").substr(ht::detail::control_mark.size() + 2));
  CHECK(to == ".answer-7");
  CHECK(read == request);
}

TEST_CASE("control: what is noted of a trial or of the experiment, by its reports and by a person, is kept") {
  const TemporaryDirectory directory;
  auto o = options(directory);
  o.attributes = {{"dataset", "v3"}};
  Running run(o);
  run.await_steps(0, 1);
  CHECK(run.ask(Kind::note, {0, 1}, {{"note", "too high"}, {"keep", true}}).text ==
        "trial 0: note=too high keep=true\ntrial 1: note=too high keep=true");
  CHECK(run.ask(Kind::note, {0}, {{"note", "too high"}}).text == "trial 0 has that already");
  CHECK(run.ask(Kind::note, {}, {{"dataset", "v4"}}).text == "the experiment: dataset=v4");
  CHECK_FALSE(run.ask(Kind::note, {99}, {{"note", "x"}}).done);
  CHECK(
      run.ask(Kind::note, {0}, {{std::string(200, 'n'), true}}).text.starts_with("an attribute's name has 200 bytes"));
  CHECK(run.ask(Kind::stop, {0}).done);
  run.await_state(0, ht::TrialState::stopped);
  CHECK(run.ask(Kind::note, {0}, {{"note", "later"}}).done);  // of one that has ended, too
  auto results = run.end();
  CHECK(results.trial(0).attributes == ht::Attributes{{"note", "later"}, {"keep", true}});
  CHECK(results.trial(1).attributes == ht::Attributes{{"note", "too high"}, {"keep", true}});
  CHECK(results.experiment().attributes == ht::Attributes{{"dataset", "v4"}});
  // A resumption knows them, and says anew what its options say.
  o.resume = true;
  o.attributes.set("by", "me");
  may_end = true;
  results = ht::tune(line, work, o);
  CHECK(results.trial(0).attributes.size() == 2);
  CHECK(results.experiment().attributes == ht::Attributes{{"dataset", "v3"}, {"by", "me"}});
}

TEST_CASE("attributes in reports: what has not changed is not recorded again, and their size is bounded") {
  const TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 1;
  std::vector<std::string> notices;
  const auto train = [](Config) -> ht::Training {
    for (int step = 0; step < 50; ++step) {
      auto report = ht::report("loss", 1.0).with("phase", std::string(step < 40 ? "warm-up" : "decay"));
      if (step == 7) report = std::move(report).with("long", std::string(5000, 'x'));
      if (step > 20)  // a new name each time
        for (int i = 0; i < 10; ++i) report.attributes.set(fmt::format("name-{}-{}", step, i), std::int64_t{step});
      co_yield std::move(report);
    }
  };
  const auto results = ht::tune(line, train, o);
  const auto attributes = results.trial(0).attributes;
  CHECK(attributes.get<std::string>("phase") == "decay");
  CHECK(attributes.get<std::string>("long").size() == ht::max_attribute);
  CHECK(attributes.get<std::string>("long").ends_with("x…"));
  CHECK(attributes.size() == ht::max_attributes);
  CHECK(attributes.get<int>("name-21-0") == 21);
  int records = 0;
  ht::read_journal(o.output, [&](const ht::Record& record) {
    records += std::holds_alternative<ht::record::AttributesSet>(record.what);
  });
  CHECK(records <= 1 + 1 + 26 + 1);  // phase, long, the names while there is room, phase
  CHECK_THROWS_WITH(ht::report("loss", 1.0).with("", 1.0), ContainsSubstring("no name"));
}
