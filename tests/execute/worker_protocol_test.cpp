#include "support/test.hpp"

#include <hypertune/execute/detail/worker_link.hpp>
#include <hypertune/execute/detail/worker_machine.hpp>
#include <hypertune/execute/detail/worker_protocol.hpp>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace hypertune;
using Do = WorkerMachine::Do;

namespace {

wire::Message round_trip(const wire::Message& message) {
  FrameDecoder decoder(wire::message_types);
  for (const char byte : wire::encode(message)) decoder.feed(std::string_view(&byte, 1));
  const auto frame = decoder.next();
  REQUIRE(frame);
  CHECK_FALSE(decoder.partial());
  return wire::decode(*frame);
}

Launch some_launch() {
  Launch launch;
  launch.trial = 7;
  launch.attempt = 2;
  launch.point = {0.1, inactive, 1e-310, -0.0};
  launch.params = Params{{"lr", 0.1}, {"n", std::int64_t{-3}}, {"b", true}, {"s", std::string("a\0b", 3)}};
  launch.restore = {{7, 3, "step-3", 10, "abc"}, {7, 1, "step-1", 9, "def"}};
  launch.allocation.lead = {
      0, "localhost", {0, 1}, {2}, {.cpus = 2, .gpus = 0.5, .memory = 1000, .custom = {{"licence", 1}}}};
  launch.seed = ~std::uint64_t{0};
  launch.next_step = 3;
  return launch;
}

template <class F>
std::string protocol_error(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    CHECK(e.code() == Errc::protocol);
    return e.what();
  }
  FAIL("no Error was thrown");
  return {};
}

}  // namespace

TEST_CASE("every message reads back as it was, and encodes the same again") {
  Reported reported{7, 2, report("nan", std::nan("")), CheckpointInfo{7, 4, "step-4", 1, "d"}};
  reported.report.metrics.emplace_back("inf", -std::numeric_limits<double>::infinity());
  reported.report.metrics.emplace_back("small", 5e-324);
  reported.report.step = 3;
  reported.report.attributes = {{"phase", "warm-up"}, {"keep", true}, {"n", std::int64_t{-3}}, {"x", 0.1}};
  reported.report.over = true;
  reported.report.remark = "printed all at once";
  reported.report.units = {{"loss", "ms"}, {"size", "MB"}};
  reported.member = 3;
  reported.fixed = true;
  reported.workers = 4;
  GroupMessage form{.trial = 7, .attempt = 2, .member = 3, .kind = GroupMessage::Kind::form};
  form.generation = 5;
  form.place = {.generation = 5, .rank = -1, .hosts = {"a", "b"}, .network = "10.1.0.0/16", .cpus = {0, 3}};
  form.key = "k";
  form.value = std::string("\0v", 2);
  form.ranks = {1, 0};
  const std::vector<wire::Message> messages{
      wire::Hello{.pid = 12},
      wire::Welcome{
          .directory = "runs/x", .heartbeat = 0.5, .checkpoints = "a", .origins = {"b", "c"}, .log_limit = 1U << 20U},
      some_launch(),
      Continue{7, 2, true},
      Pause{.trial = 7, .attempt = 2, .save = true, .keep = false},
      Stop{7, 2, true},
      wire::Shutdown{},
      Started{7, 2, 3},
      reported,
      Checkpointed{7, 2, {7, 4, "step-4", 1, "d"}},
      CheckpointLost{7, {7, 4, "step-4", 1, "d"}, "why"},
      Paused{7, 2, true},
      Finished{7, 2},
      Stopped{7, 2},
      Failed{7, 2, {FailureSource::preemption, "gone", false, true}},
      wire::LogLine{"hello"},
      wire::Alive{9},
      SaveFailed{7, 4, "no space"},
      form};
  REQUIRE(messages.size() == wire::message_types);
  for (const auto& message : messages) {
    const auto back = round_trip(message);
    CHECK(back.index() == message.index());
    CHECK(wire::encode(back) == wire::encode(message));  // to the bit, NaN included
  }
  CHECK(std::get<Reported>(round_trip(reported)).report.over);
  CHECK(std::get<Reported>(round_trip(reported)).report.remark == "printed all at once");
  CHECK(std::get<Reported>(round_trip(reported)).report.units == reported.report.units);
  const auto group = std::get<GroupMessage>(round_trip(form));
  CHECK(group.place == form.place);
  CHECK(group.ranks == form.ranks);
  CHECK(group.value == form.value);
  auto seated = some_launch();
  seated.seat = Seat{2, {.generation = 1, .rank = 1, .hosts = {"a", "a"}}};
  CHECK(std::get<Launch>(round_trip(seated)).seat->place == seated.seat->place);
  CHECK(std::get<Launch>(round_trip(seated)).seat->member == 2);
  auto wrong = form;
  wrong.place.rank = 2;
  CHECK_THAT(protocol_error([&] { round_trip(wrong); }), ContainsSubstring("a rank is not within its group"));
  const auto launch = std::get<Launch>(round_trip(some_launch()));
  CHECK(launch.params == some_launch().params);
  CHECK(std::signbit(launch.point[3]));
  CHECK(launch.allocation.lead.resources == some_launch().allocation.lead.resources);
}

TEST_CASE("bytes that are no frames are refused") {
  FrameDecoder decoder(wire::message_types);
  SECTION("too long") {
    decoder.feed(std::string("\xff\xff\xff\x7f\x01", 5));
    CHECK_THAT(protocol_error([&] { decoder.next(); }), ContainsSubstring("at most 16777216 are allowed"));
    CHECK_THAT(protocol_error([&] { decoder.feed("x"); }), ContainsSubstring("after a malformed frame"));
  }
  SECTION("an unknown type") {
    decoder.feed(std::string("\0\0\0\0\x63", 5));
    CHECK_THAT(protocol_error([&] { decoder.next(); }), ContainsSubstring("unknown type 99"));
  }
  SECTION("a payload cut short, or too long, at every place") {
    const auto bytes = wire::encode(some_launch());
    const std::string payload = bytes.substr(frame_header_size);
    for (std::size_t length = 0; length < payload.size(); ++length)
      protocol_error([&] { wire::decode({3, payload.substr(0, length)}); });
    protocol_error([&] { wire::decode({3, payload + "x"}); });
  }
  SECTION("any bytes at all: an Error or a message, never anything else") {
    std::mt19937 random(1);
    for (int i = 0; i < 20000; ++i) {
      std::string payload(random() % 40, '\0');
      for (char& c : payload) c = static_cast<char>(random() % 4 == 0 ? random() : random() % 8);
      try {
        static_cast<void>(wire::decode({static_cast<std::uint8_t>(1 + random() % wire::message_types), payload}));
      } catch (const Error& e) { CHECK(e.code() == Errc::protocol); }
    }
  }
}

TEST_CASE("another version is refused by both sides, and says what to do") {
  WorkerMachine machine;
  CHECK_THAT(protocol_error([&] { machine.receive(wire::Welcome{.version = wire::version + 1}); }),
             ContainsSubstring("build both from one hypertune"));
  WorkerLink link({});
  CHECK_THAT(protocol_error([&] { link.receive(wire::Hello{.version = wire::version + 1}, 0); }),
             ContainsSubstring("version " + std::to_string(wire::version + 1)));
}

TEST_CASE("the worker's machine: launch, report, answers, end") {
  WorkerMachine machine;
  CHECK(machine.next().what == Do::wait);
  CHECK_THAT(protocol_error([&] { machine.receive(some_launch()); }), ContainsSubstring("before the Welcome"));
  machine.receive(wire::Welcome{});
  machine.receive(some_launch());
  CHECK(machine.next().what == Do::begin);
  CHECK(machine.next().what == Do::step);
  CHECK_THAT(protocol_error([&] { machine.receive(Continue{7, 2}); }), ContainsSubstring("no report waits"));
  machine.receive(Continue{7, 1});  // of an earlier attempt
  machine.reported();
  CHECK(machine.next().what == Do::wait);
  machine.receive(Continue{7, 2, true});
  const auto step = machine.next();
  CHECK((step.what == Do::step && step.save));
  machine.reported();
  SECTION("pause, and on") {
    machine.receive(Pause{.trial = 7, .attempt = 2, .save = true});
    const auto park = machine.next();
    CHECK((park.what == Do::park && park.save && park.keep));
    CHECK(machine.next().what == Do::wait);
    auto again = some_launch();
    again.parked = true;
    machine.receive(again);
    CHECK(machine.next().what == Do::step);
  }
  SECTION("stop within a step") {
    machine.receive(Continue{7, 2});
    CHECK(machine.next().what == Do::step);
    machine.receive(Stop{7, 2, true});
    CHECK(machine.stop_requested());
    const auto end = machine.next();
    CHECK((end.what == Do::end && end.save));
    machine.ended();
    CHECK_FALSE(machine.stop_requested());
    machine.receive(Stop{7, 2});  // crossed the end
    auto next = some_launch();
    next.trial = 8;
    machine.receive(next);
    CHECK(machine.next().what == Do::begin);
  }
  SECTION("a second launch") {
    CHECK_THAT(protocol_error([&] { machine.receive(some_launch()); }), ContainsSubstring("under way"));
  }
  SECTION("shutdown") {
    machine.receive(wire::Shutdown{});
    CHECK(machine.next().what == Do::end);
    machine.ended();
    CHECK(machine.next().what == Do::leave);
  }
}

TEST_CASE("the driver's link: an end is told when the process is gone, or at once where it stays") {
  const bool reusable = GENERATE(false, true);
  WorkerLink link({.reusable = reusable});
  CHECK(link.start(some_launch(), 0).send.empty());  // after the greeting
  CHECK(link.receive(wire::Hello{}, 0).send.size() == 2);
  CHECK(link.receive(Started{7, 2, 3}, 0).events.size() == 1);
  CHECK(link.receive(Reported{7, 2, report("x", 1), {}}, 1).events.size() == 1);
  protocol_error([&] { link.receive(Reported{7, 2, report("x", 1), {}}, 1); });
  protocol_error([&] { link.receive(Finished{7, 1}, 1); });
  CHECK(link.perform(Continue{7, 2}, true, 1).send.size() == 1);
  CHECK(link.perform(Continue{7, 2}, true, 1).send.empty());
  const auto end = link.receive(Finished{7, 2}, 2);
  if (reusable) {
    CHECK(std::holds_alternative<Finished>(end.events.at(0)));
    CHECK(link.free());
    CHECK(link.exited({}).events.empty());
  } else {
    CHECK(end.events.empty());
    CHECK(std::holds_alternative<wire::Shutdown>(end.send.at(0)));
    CHECK(std::holds_alternative<Finished>(link.exited({}).events.at(0)));
  }
}

TEST_CASE("the driver's link: hang, grace, death") {
  WorkerLink link({.hang_timeout = 10, .stop_grace = 2});
  link.start(some_launch(), 0);
  link.receive(wire::Hello{}, 0);
  CHECK(link.deadline() == 10);
  SECTION("hung") {
    link.receive(wire::Alive{1}, 6);
    link.receive(wire::Alive{1}, 8);  // the process lives, the trial gives no sign
    CHECK_FALSE(link.tick(15.9).kill);
    CHECK(link.tick(16).kill);
    CHECK_FALSE(link.tick(17).kill);
    const auto failed = std::get<Failed>(link.exited({.text = "signal 9"}).events.at(0));
    CHECK(failed.cause.source == FailureSource::user);
    CHECK_THAT(failed.cause.text, ContainsSubstring("hung"));
  }
  SECTION("a stop that is not heeded") {
    CHECK(link.perform(Stop{7, 2}, true, 1).send.size() == 1);
    CHECK(link.tick(3).kill);
    CHECK(std::holds_alternative<Stopped>(link.exited({}).events.at(0)));
  }
  SECTION("the process dies") {
    const auto failed = std::get<Failed>(link.exited({FailureSource::infrastructure, "signal 9"}).events.at(0));
    CHECK(failed.cause.text == "signal 9");
  }
  SECTION("it dies while paused: nothing is told until it is asked for") {
    link.receive(Reported{7, 2, report("x", 1), {}}, 1);
    link.perform(Pause{7, 2}, true, 1);
    CHECK(link.receive(Paused{7, 2, true}, 1).events.size() == 1);
    CHECK(link.deadline() == std::numeric_limits<double>::infinity());
    CHECK(link.exited({.text = "signal 9"}).events.empty());
    CHECK(link.lost_parked()->text == "signal 9");
  }
}

TEST_CASE("the driver's link: the process of a member is stopped") {
  Launch launch = some_launch();
  launch.seat = Seat{.member = 1, .place = {}};
  WorkerLink link({.silence_timeout = 60});
  link.start(launch, 0);
  link.receive(wire::Hello{}, 0);
  CHECK(link.deadline() == 60);
  link.receive(wire::Alive{1}, 50);
  link.receive(wire::Alive{1}, 55);  // it makes no progress, but its process runs
  CHECK(link.deadline() == 115);
  CHECK_FALSE(link.tick(120).kill);  // perhaps it was the driver that was stopped
  CHECK(link.deadline() == 130);
  SECTION("its words are read now") {
    link.receive(wire::Alive{1}, 121);
    CHECK(link.deadline() == 181);
  }
  SECTION("there are none") {
    CHECK_FALSE(link.tick(129).kill);
    CHECK(link.tick(130).kill);
    CHECK(link.deadline() == std::numeric_limits<double>::infinity());
    const auto failed = std::get<Failed>(link.exited({.text = "signal 9"}).events.at(0));
    CHECK(failed.cause.source == FailureSource::infrastructure);
    CHECK(failed.cause.text == "its process has not been heard of for 75 s");
    CHECK(failed.member == 1);
  }
  SECTION("one that is alone may be looked at in a debugger") {
    WorkerLink alone({.silence_timeout = 60});
    alone.start(some_launch(), 0);
    alone.receive(wire::Hello{}, 0);
    CHECK(alone.deadline() == std::numeric_limits<double>::infinity());
  }
}
