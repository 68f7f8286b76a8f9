// Pods that call home: a real keeper, a real listener, what disturbs them.
#include "pods.hpp"
#include "relay.hpp"

#include <hypertune/error.hpp>

#include <stop_token>
#include <thread>

using namespace hypertune;
using namespace hypertune::test;
using remote::DialError;
using remote::FailureClass;

namespace {

const std::vector<std::string> echo{"cat"};

std::string dial_error(const k8s::ReverseDialer& dialer, std::stop_token stop = {}) {
  try {
    static_cast<void>(dialer.dial(std::move(stop)));
  } catch (const DialError& e) { return e.what(); }
  return {};
}

}  // namespace

TEST_CASE("a worker calls home and its agent's stream carries all bytes both ways") {
  const auto token = Secret::generate();
  const k8s::AgentListener listener(on_loopback(token));
  const k8s::ReverseDialer dialer(listener, "worker-0", 20);
  auto pod = Pod::calling("worker-0", token, echo);
  pod.point_to(listener.address("127.0.0.1")).start();
  Talk talk(dialer.dial({}));
  talk.say("hello");
  CHECK(talk.hear(5) == "hello");
  // More than the sockets, the messages and the frames hold: both ways at once.
  std::string much(3 << 20, '\0');
  for (std::size_t i = 0; i < much.size(); ++i) much[i] = static_cast<char>(i * 7919U >> 8U);
  std::jthread writer([&] { talk.say(much); });
  CHECK(talk.hear(much.size()) == much);
  writer.join();
  CHECK(listener.connected("worker-0"));
  CHECK(listener.connections() == 1);

  // The driver is done: the agent ends, and the worker comes again.
  REQUIRE(pod.agents().size() == 1);
  const auto first = pod.agents();
  talk = Talk(remote::AgentStream{});
  CHECK(eventually([&] { return !process::is_alive(first.front()); }));
  Talk again(dialer.dial({}));
  again.say("again");
  CHECK(again.hear(5) == "again");
  CHECK(pod.agents() != first);
  pod.signal(SIGTERM);
  CHECK(pod.ended());
  CHECK(pod.exit_code() == 0);
  CHECK(again.ended());
}

TEST_CASE("no secret is in an argument, in the agent's environment or in a log") {
  const auto token = Secret::generate();
  const k8s::AgentListener listener(on_loopback(token));
  const k8s::ReverseDialer dialer(listener, "w", 20);
  auto pod = Pod::calling("w", token, {"sh", "-c", "env; echo done"});
  pod.point_to(listener.address("127.0.0.1")).start();
  Talk talk(dialer.dial({}));
  const auto environment = talk.hear(std::string::npos);
  CHECK_THAT(environment, ContainsSubstring("HYPERTUNE_POD_NAME=w") && ContainsSubstring("done"));
  CHECK(environment.find(token.reveal()) == std::string::npos);
  CHECK(text_of("/proc/" + std::to_string(pod.pid()) + "/cmdline").find(token.reveal()) == std::string::npos);
  CHECK(pod.log().find(token.reveal()) == std::string::npos);
}

TEST_CASE("a driver that was started anew elsewhere is found, by a worker that is connected and by one that waits") {
  const auto token = Secret::generate();
  auto pod = Pod::calling("w", token, echo);
  std::optional<k8s::AgentListener> first(on_loopback(token));
  std::optional<k8s::ReverseDialer> dialer(std::in_place, *first, "w", 20);
  pod.point_to(first->address("127.0.0.1")).start();
  std::optional<Talk> talk(dialer->dial({}));
  const bool told_first = GENERATE(true, false);
  INFO("told before the old one ends: " << told_first);
  const k8s::AgentListener second(on_loopback(token));
  const k8s::ReverseDialer there(second, "w", 20);
  if (told_first) pod.point_to(second.address("127.0.0.1"));
  if (!told_first) {
    first->close();
    CHECK(pod.says("no connection to the driver"));
    pod.point_to(second.address("127.0.0.1"));
  }
  Talk other(there.dial({}));
  other.say("x");
  CHECK(other.hear(1) == "x");
  CHECK(talk->ended());
}

TEST_CASE("a killed agent ends its stream, and the next one is started by the same keeper") {
  const auto token = Secret::generate();
  const k8s::AgentListener listener(on_loopback(token));
  const k8s::ReverseDialer dialer(listener, "w", 20);
  auto pod = Pod::calling("w", token, {"sh", "-c", "echo up; cat"});
  pod.point_to(listener.address("127.0.0.1")).start();
  Talk talk(dialer.dial({}));
  CHECK(talk.hear(3) == "up\n");
  REQUIRE(pod.agents().size() == 1);
  ::kill(-pod.agents().front(), SIGKILL);
  CHECK(talk.ended());
  Talk again(dialer.dial({}));
  CHECK(again.hear(3) == "up\n");
}

TEST_CASE("what an agent says before it ends explains it, and is in the pod's log") {
  const auto token = Secret::generate();
  const k8s::AgentListener listener(on_loopback(token));
  const k8s::ReverseDialer dialer(listener, "w", 20);
  SECTION("a library is missing") {
    auto pod =
        Pod::calling("w", token, {"sh", "-c", "echo 'x: error while loading shared libraries: y' >&2; exit 127"});
    pod.point_to(listener.address("127.0.0.1")).start();
    Talk talk(dialer.dial({}));
    const auto errors = talk.errors();
    CHECK_THAT(errors, ContainsSubstring("error while loading shared libraries: y\n") &&
                           ContainsSubstring("the agent ended with exit code 127 before it said anything"));
    CHECK(dialer.classify(errors) == FailureClass::permanent);
    CHECK(pod.says("error while loading shared libraries: y"));
  }
  SECTION("there is no program") {
    auto pod = Pod::calling("w", token, {"/no/such/program"});
    pod.point_to(listener.address("127.0.0.1")).start();
    Talk talk(dialer.dial({}));
    const auto errors = talk.errors();
    CHECK_THAT(errors, ContainsSubstring("cannot run '/no/such/program': No such file or directory"));
    CHECK(dialer.classify(errors) == FailureClass::permanent);
  }
  SECTION("one that has spoken says no more of it to the driver") {
    auto pod = Pod::calling("w", token, {"sh", "-c", "echo out; read x; echo secret >&2; read y"});
    pod.point_to(listener.address("127.0.0.1")).start();
    Talk talk(dialer.dial({}));
    CHECK(talk.hear(4) == "out\n");
    talk.say("\n");
    CHECK(pod.says("secret"));
    talk.say("\n");
    CHECK(talk.errors().find("secret") == std::string::npos);
  }
}

TEST_CASE("a wrong token lets nobody in, and is told once") {
  const auto token = Secret::generate();
  Said said;
  auto options = on_loopback(token);
  options.say = said.taker();
  const k8s::AgentListener listener(options);
  const k8s::ReverseDialer dialer(listener, "w", 0.5);
  auto pod = Pod::calling("w", Secret::generate(), echo);
  pod.point_to(listener.address("127.0.0.1")).start();
  CHECK(pod.says("it answers 401: a wrong token, or none"));
  CHECK(eventually([&] { return said.lines().size() == 1; }));
  CHECK_THAT(said.lines().front(), ContainsSubstring("had no token or a wrong one, the last from 127.0.0.1"));
  CHECK_THAT(dial_error(dialer), ContainsSubstring("it has not connected within 0.5 s"));
  CHECK(said.lines().size() == 1);  // it has tried again meanwhile
  CHECK_FALSE(listener.connected("w"));
  CHECK(pod.agents().empty());
}

TEST_CASE("a driver with another certificate than the pinned one gets no token") {
  const auto token = Secret::generate();
  Said said;
  auto options = on_loopback(token);
  options.say = said.taker();
  const k8s::AgentListener listener(options);
  const k8s::ReverseDialer dialer(listener, "w", 20);
  auto address = listener.address("127.0.0.1");
  const auto right = address;
  address.fingerprint.assign(64, 'a');
  auto pod = Pod::calling("w", token, echo);
  pod.point_to(address).start();
  CHECK(pod.says("it has another certificate than the one that is pinned"));
  CHECK_FALSE(listener.connected("w"));
  CHECK(said.lines().empty());
  pod.point_to(right);
  Talk talk(dialer.dial({}));
  talk.say("x");
  CHECK(talk.hear(1) == "x");
}

TEST_CASE("a worker that the driver does not know is let in once it does") {
  const auto token = Secret::generate();
  const k8s::AgentListener listener(on_loopback(token));
  auto pod = Pod::calling("w", token, echo);
  pod.point_to(listener.address("127.0.0.1")).start();
  CHECK(pod.says("it answers 404: the driver does not know this worker, or not yet"));
  const k8s::ReverseDialer dialer(listener, "w", 20);
  Talk talk(dialer.dial({}));
  talk.say("x");
  CHECK(talk.hear(1) == "x");
}

TEST_CASE("either side notices within its limit that the other one is silent") {
  const auto token = Secret::generate();
  const k8s::AgentListener listener(on_loopback(token));
  const k8s::ReverseDialer dialer(listener, "w", 20);
  Relay relay(listener.port());
  auto address = listener.address("127.0.0.1");
  address.port = relay.port();
  auto pod = Pod::calling("w", token, echo);
  pod.point_to(address).start();
  Talk talk(dialer.dial({}));
  talk.say("x");
  CHECK(talk.hear(1) == "x");
  SECTION("nothing comes through any more") {
    relay.mute();
    CHECK(talk.ended());
    CHECK_THAT(talk.errors(), ContainsSubstring("no sign of life for 1."));
    CHECK(pod.says("the connection to the driver has ended: no sign of life for 1."));
    CHECK(eventually([&] { return pod.agents().empty(); }));
    pod.point_to(listener.address("127.0.0.1"));
  }
  SECTION("it is cut") {
    relay.cut();
    CHECK(talk.ended());
    CHECK_THAT(talk.errors(), ContainsSubstring("the connection was lost"));
  }
  SECTION("the pod stands still") {
    pod.signal(SIGSTOP);
    CHECK(talk.ended());
    CHECK_FALSE(listener.connected("w"));
    pod.signal(SIGCONT);
  }
  Talk again(dialer.dial({}));
  again.say("y");
  CHECK(again.hear(1) == "y");
}

TEST_CASE("a newer connection of a worker takes the older one's place") {
  const auto token = Secret::generate();
  const k8s::AgentListener listener(on_loopback(token));
  const k8s::ReverseDialer dialer(listener, "w", 20);
  auto pod = Pod::calling("w", token, echo);
  pod.point_to(listener.address("127.0.0.1")).start();
  Talk talk(dialer.dial({}));
  pod.signal(SIGSTOP);  // so that it does not come back
  auto second = Pod::calling("w", token, {"sh", "-c", "echo second; cat"});
  second.point_to(listener.address("127.0.0.1")).start();
  CHECK(talk.ended());
  Talk other(dialer.dial({}));
  CHECK(other.hear(7) == "second\n");
  CHECK(listener.connections() == 1);
}

TEST_CASE("to dial waits for the worker, says why it is not there, and ends when asked to") {
  k8s::AgentListener listener(on_loopback(Secret::generate()));
  const k8s::ReverseDialer dialer(listener, "w", 0.1);
  CHECK(dial_error(dialer) == "it has not connected within 0.1 s");
  dialer.set_waiting_reason("its pod waits for a node with a GPU");
  CHECK(dial_error(dialer) == "its pod waits for a node with a GPU");
  CHECK_THROWS_AS(k8s::ReverseDialer(listener, "w"), Error);
  CHECK_THROWS_AS(k8s::ReverseDialer(listener, "a/../b"), Error);

  const k8s::ReverseDialer watched(listener, "u", 1000);
  const auto look = [] { return std::optional(remote::DialError(FailureClass::permanent, "its pod has ended")); };
  CHECK_THROWS_WITH(watched.dial({}, look), "its pod has ended");

  const k8s::ReverseDialer patient(listener, "v", 1000);
  std::stop_source stop;
  std::string why;
  {
    const std::jthread waits([&] { why = dial_error(patient, stop.get_token()); });
    stop.request_stop();
  }
  CHECK(why == "it was not waited for any longer");
  {
    const std::jthread waits([&] { why = dial_error(patient); });
    patient.refuse(FailureClass::permanent, "no image of this name");
  }
  CHECK(why == "no image of this name");
  CHECK(dial_error(patient) == "no image of this name");
  CHECK(patient.classify("") == FailureClass::permanent);
  patient.set_waiting_reason({});
  {
    const std::jthread waits([&] { why = dial_error(patient); });
    listener.close();
  }
  CHECK_THAT(why, ContainsSubstring("the driver"));
}

TEST_CASE("a stream that is not waited for speaks when its worker does") {
  const auto token = Secret::generate();
  const k8s::AgentListener listener(on_loopback(token));
  const k8s::ReverseDialer dialer(listener, "w", 0);
  {
    Talk dropped(dialer.dial({}));  // its owner is done with it before anybody came
    dropped.stream().carrier.end(0);
    CHECK(dropped.ended());
  }
  Talk refused(dialer.dial({}));
  dialer.refuse(FailureClass::permanent, "no image of this name");
  CHECK(refused.errors() == "no image of this name\n");
  CHECK(refused.ended());
  dialer.set_waiting_reason({});
  Talk talk(dialer.dial({}));
  talk.say("early");
  auto pod = Pod::calling("w", token, echo);
  pod.point_to(listener.address("127.0.0.1")).start();
  CHECK(talk.hear(5) == "early");
}

TEST_CASE("an agent that reads nothing holds the driver's bytes back, not in memory, and ends all the same") {
  const auto token = Secret::generate();
  const k8s::AgentListener listener(on_loopback(token));
  const k8s::ReverseDialer dialer(listener, "w", 20);
  auto pod = Pod::calling("w", token, {"sleep", "1000"});
  pod.point_to(listener.address("127.0.0.1")).start();
  Talk talk(dialer.dial({}));
  const int to = talk.stream().to.get();
  ::fcntl(to, F_SETFL, ::fcntl(to, F_GETFL) | O_NONBLOCK);
  const std::string piece(1 << 16, 'x');
  std::size_t taken = 0;
  pollfd polled{.fd = to, .events = POLLOUT, .revents = 0};
  while (::poll(&polled, 1, 2500) > 0 && (polled.revents & POLLHUP) == 0) {
    const auto n = ::write(to, piece.data(), piece.size());
    if (n > 0) taken += static_cast<std::size_t>(n);
    REQUIRE(taken < std::size_t{64} << 20U);
  }
  CHECK(taken > piece.size());
  CHECK(listener.connected("w"));  // for longer than silence is borne: the worker is not silent
  const auto agents = pod.agents();
  REQUIRE(agents.size() == 1);
  talk.stream().carrier.end(0);
  CHECK(eventually([&] { return !process::is_alive(agents.front()); }));
}

TEST_CASE("a pod whose driver does not come ends by itself and says why") {
  const k8s::DriverAddress nowhere{.ip = "127.0.0.1", .port = 1, .fingerprint = std::string(64, 'a')};
  const bool known = GENERATE(true, false);
  Pod orphan({HYPERTUNE_TEST_POD, "keep", "1", "1", "1", "cat"},
             {{"HYPERTUNE_POD_ORPHAN", "0.5"},
              {"HYPERTUNE_POD_NAME", "w"},
              {"HYPERTUNE_POD_TOKEN", Secret::generate().reveal()}});
  if (known) orphan.point_to(nowhere);
  orphan.start();
  REQUIRE(orphan.ended());
  CHECK(orphan.exit_code() == 0);
  CHECK_THAT(orphan.log(), ContainsSubstring("no driver has been here for 0.5 s, so that this pod ends"));
  CHECK_THAT(orphan.log(),
             ContainsSubstring(known ? "wss://127.0.0.1:1: Connection refused" : "does not say yet where it is"));
}

TEST_CASE("a listener wants a token and an address that is one") {
  CHECK_THROWS_AS(k8s::AgentListener(k8s::ListenerOptions{}), Error);
  auto options = on_loopback(Secret::generate());
  options.address = "here";
  CHECK_THROWS_AS(k8s::AgentListener(options), Error);
  options = on_loopback(Secret::generate());
  const k8s::AgentListener first(options);
  options.port = first.port();
  try {
    const k8s::AgentListener second(options);
    FAIL("two listen at one port");
  } catch (const Error& e) { CHECK(e.code() == Errc::busy); }
}
