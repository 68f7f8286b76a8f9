// Who comes to the listener's port: workers, and whoever else finds it.
#include "connect_request.hpp"
#include "pods.hpp"
#include "relay.hpp"

#include <hypertune/error.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

#include <random>

using namespace hypertune;
using namespace hypertune::test;
namespace asio = boost::asio;

namespace {

// Says something over TLS and hears all of the answer.
std::string ask(std::uint16_t port, const std::string& said, int version = TLS1_3_VERSION) {
  asio::io_context io;
  asio::ssl::context tls(asio::ssl::context::tls_client);
  SSL_CTX_set_max_proto_version(tls.native_handle(), version);
  asio::ssl::stream<asio::ip::tcp::socket> stream(io, tls);
  stream.next_layer().connect({asio::ip::address_v4::loopback(), port});
  boost::system::error_code error;
  stream.handshake(asio::ssl::stream_base::client, error);
  if (error) return "no TLS";
  asio::write(stream, asio::buffer(said), error);
  std::string answer;
  asio::read(stream, asio::dynamic_buffer(answer, 65536), error);
  return answer;
}

std::string upgrade(const std::string& target, const std::string& more) {
  return "GET " + target +
         " HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
         "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n" +
         more + "\r\n";
}

}  // namespace

TEST_CASE("who does not know the token learns nothing, who does learns what is wrong") {
  const auto token = Secret::generate();
  const k8s::AgentListener listener(on_loopback(token));
  const k8s::ReverseDialer dialer(listener, "w", 20);
  const std::string bearer = "Authorization: Bearer " + token.reveal() + "\r\n";
  const std::string protocol = "Sec-WebSocket-Protocol: v1.agent.hypertune\r\n";
  const auto port = listener.port();
  const std::vector<std::string> wrong_ones{
      "", "Authorization: Bearer x\r\n", "Authorization: Basic " + token.reveal() + "\r\n",
      "Authorization: Bearer " + token.reveal() + "x\r\n", "Authorization: bearer\r\n"};
  for (const char* target : {"/workers/w", "/workers/other", "/"})
    for (const auto& wrong : wrong_ones)
      CHECK_THAT(ask(port, upgrade(target, wrong + protocol)),
                 Catch::Matchers::StartsWith("HTTP/1.1 401 Unauthorized\r\n") &&
                     Catch::Matchers::EndsWith("\r\n\r\na wrong token, or none"));
  CHECK_THAT(ask(port, upgrade("/workers/other", bearer + protocol)), Catch::Matchers::StartsWith("HTTP/1.1 404"));
  CHECK_THAT(ask(port, upgrade("/", bearer + protocol)), Catch::Matchers::EndsWith("there is only /workers/NAME here"));
  CHECK_THAT(ask(port, upgrade("/workers/../w", bearer + protocol)), Catch::Matchers::StartsWith("HTTP/1.1 404"));
  CHECK_THAT(ask(port, upgrade("/workers/w", bearer)), Catch::Matchers::StartsWith("HTTP/1.1 426"));
  CHECK_THAT(
      ask(port, upgrade("/workers/w", bearer + "Sec-WebSocket-Protocol: v2.agent.hypertune\r\n")),
      Catch::Matchers::EndsWith("the driver speaks 'v1.agent.hypertune': the pod's program is of another version"));
  CHECK_THAT(ask(port, "GET /workers/w HTTP/1.1\r\nHost: x\r\n" + bearer + protocol + "\r\n"),
             Catch::Matchers::StartsWith("HTTP/1.1 400"));
  CHECK(ask(port, upgrade("/workers/w", bearer + protocol), TLS1_2_VERSION) == "no TLS");
  CHECK_FALSE(listener.connected("w"));
}

TEST_CASE("whoever says nothing, too much or nonsense does not keep a worker out") {
  const auto token = Secret::generate();
  auto options = on_loopback(token);
  options.handshakes = 16;
  const k8s::AgentListener listener(options);
  const k8s::ReverseDialer dialer(listener, "w", 60);
  std::vector<hypertune::detail::Descriptor> silent;
  for (int i = 0; i < 40; ++i) {
    silent.push_back(connected_to(listener.port()));
    REQUIRE(silent.back());
    if (i % 2 != 0) ::send(silent.back().get(), "\x16\x03\x01\x02\x00\x01", 6, MSG_NOSIGNAL);  // a ClientHello begins
  }
  auto pod = Pod::calling("w", token, {"cat"});
  pod.point_to(listener.address("127.0.0.1")).start();
  Talk talk(dialer.dial({}));
  talk.say("x");
  CHECK(talk.hear(1) == "x");

  std::mt19937_64 random(5);
  for (int i = 0; i < 60; ++i) {
    std::string junk(random() % 3000, '\0');
    for (char& c : junk) c = static_cast<char>(random());
    if (i % 2 == 0) {
      static_cast<void>(ask(listener.port(), junk));
    } else {
      const auto socket = connected_to(listener.port());
      ::send(socket.get(), junk.data(), junk.size(), MSG_NOSIGNAL);
    }
  }
  CHECK(ask(listener.port(), "GET /workers/w HTTP/1.1\r\nX: " + std::string(100'000, 'x')).empty());
  talk.say("y");
  CHECK(talk.hear(1) == "y");
}

TEST_CASE("a connection that has not shown its token in time is closed") {
  auto options = on_loopback(Secret::generate());
  options.handshake = 0.2;
  const k8s::AgentListener listener(options);
  const auto socket = connected_to(listener.port());
  pollfd polled{.fd = socket.get(), .events = POLLIN, .revents = 0};
  REQUIRE(::poll(&polled, 1, 20'000) == 1);
  char byte = 0;
  CHECK(::recv(socket.get(), &byte, 1, 0) <= 0);
  CHECK(ask(listener.port(), "GET /workers/w HTTP/1.1\r\n").empty());  // never ends
}

TEST_CASE("a worker that breaks the protocol loses its connection") {
  const auto token = Secret::generate();
  const k8s::AgentListener listener(on_loopback(token));
  const k8s::ReverseDialer dialer(listener, "w", 0);
  const auto request = upgrade(
      "/workers/w", "Authorization: Bearer " + token.reveal() + "\r\nSec-WebSocket-Protocol: v1.agent.hypertune\r\n");
  // Frames of a client, masked by zeros: it speaks before it is asked to; text; an unknown part; no part at all; not
  // masked; longer than any may be.
  const auto frame = [](char first, const std::string& what) {
    return std::string{first, static_cast<char>(0x80 | static_cast<int>(what.size())), 0, 0, 0, 0} + what;
  };
  for (const auto& bad :
       {frame('\x82', std::string("\x01") + "early"), frame('\x81', std::string("\x01") + "text"),
        frame('\x82', std::string("\x07") + "other"), frame('\x82', ""), std::string("\x82\x02\x01") + "x",
        std::string("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 14)}) {
    const auto answer = ask(listener.port(), request + bad);
    CHECK_THAT(answer, Catch::Matchers::StartsWith("HTTP/1.1 101"));
    CHECK(eventually([&] { return !listener.connected("w"); }));
  }
}

TEST_CASE("where the driver is, is a line that is read as it was written") {
  const std::string pin(64, 'c');
  for (const auto& address : {k8s::DriverAddress{"10.0.0.7", 4711, pin}, k8s::DriverAddress{"fd00::7", 1, pin}})
    CHECK(k8s::DriverAddress::parse("  " + address.to_string() + "\n") == address);
  CHECK(k8s::DriverAddress{"fd00::7", 65535, pin}.to_string() == "wss://[fd00::7]:65535 sha256:" + pin);
  const std::string good = "wss://10.0.0.7:4711 sha256:" + pin;
  for (const auto& bad :
       {std::string(), std::string(" \n"), good + "0", good.substr(0, good.size() - 1), "ws" + good.substr(3),
        "wss://10.0.0.7 sha256:" + pin, "wss://10.0.0.7:0 sha256:" + pin, "wss://10.0.0.7:65536 sha256:" + pin,
        "wss://10.0.0.7:-1 sha256:" + pin, "wss://fd00::7:1 sha256:" + pin, "wss://[10.0.0.7]:1 sha256:" + pin,
        "wss://driver:1 sha256:" + pin, "wss://10.0.0.7:4711  sha256:" + pin, good + " x", std::string(5000, 'w')}) {
    INFO(bad);
    try {
      k8s::DriverAddress::parse(bad);
      FAIL("it was taken");
    } catch (const Error& e) {
      CHECK(e.code() == Errc::input);
      CHECK(std::string(e.what()).size() < 300);
    }
  }
}
