#include "host_protocol.hpp"

#include "support/test.hpp"

#include <fmt/format.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace wire = hypertune::remote::wire;
using hypertune::Cause;
using hypertune::CheckpointInfo;
using hypertune::Errc;
using hypertune::Error;
using hypertune::Failed;
using hypertune::FailureSource;
using hypertune::frame_header_size;
using hypertune::FrameDecoder;
using hypertune::Launch;
using hypertune::Notice;
using hypertune::Pause;

namespace {

template <class F>
std::string protocol_error(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    CHECK(e.code() == Errc::protocol);
    return e.what();
  }
  FAIL("no Error was thrown");
  return {};
}

std::vector<wire::Message> examples() {
  const CheckpointInfo info{7, 3, "step-3", 12, "abc"};
  return {
      wire::Hello{.pid = 12,
                  .machine = "x86_64",
                  .host = {.name = "node",
                           .total = {.cpus = 4, .gpus = 2, .memory = 1},
                           .addresses = {"127.0.0.1", "10.1.0.5", "fd00::5"}},
                  .clock = 5,
                  .by_content = true},
      wire::Welcome{.host_name = "a"},
      wire::Begin{.experiment = "ab",
                  .incarnation = 1,
                  .log_limit = 8192,
                  .program = std::string("x\0y", 3),
                  .notice_url = "http://x",
                  .by_content = true,
                  .inline_limit = 5,
                  .token = "secret",
                  .rate_limit = 6,
                  .direct = true,
                  .direct_port = 65535,
                  .shared = "~/run",
                  .shared_proof = "proof-1",
                  .shared_area = "1-a"},
      wire::Heartbeat{3},
      wire::Credit{1U << 20U},
      Pause{1, 2, true},
      Notice{"text"},
      hypertune::SaveFailed{7, 30, "no space"},
      wire::LogPiece{1, 2, "line\n"},
      wire::Usage{.cpu = 1.5, .memory = 1, .memory_total = 2, .gpus = {0.5}, .gpu_memory = {3}},
      wire::Draining{"notice", 30},
      wire::Offer{1, 2, info, "step-1", {{"a", 5}, {"b/c", 7}}},
      wire::Piece{1, std::string(1000, 'x')},
      wire::Taken{1, "full"},
      wire::Offer{.transfer = 1, .attempt = 2, .info = info, .by_content = true},
      wire::Want{1, 7, info, true, {"a"}},
      wire::Offer{.transfer = 1, .attempt = 2, .info = info, .shared = true},
      wire::Proof{"read", "wrote", "error"},
      wire::Share{true},
      wire::Unavailable{1, "gone", true},
      wire::Refusal{"no", false},
      wire::Shutdown{false},
      wire::Serving{"https://10.0.0.1:4000#00"},
      wire::Source{.transfer = 1, .content_id = "id", .peers = {"a", "b"}},
      wire::Fetched{1, 100, 900, true, {"a", "b"}},
      wire::StreamOpen{2},
      wire::StreamPiece{2, std::string(1000, 'y')},
      wire::StreamEnd{2},
      Failed{1, 2, Cause{.source = FailureSource::preemption, .text = "x"}},
      Launch{
          .trial = 7, .attempt = 2, .point = {0.5, std::nan("")}, .params = {}, .restore = {info}, .allocation = {}}};
}

}  // namespace

TEST_CASE("every message of the host protocol reads back as it was") {
  for (const auto& message : examples()) {
    std::string bytes;
    wire::append(bytes, message);
    FrameDecoder decoder(wire::message_types);
    for (const char byte : bytes) decoder.feed(std::string_view(&byte, 1));
    const auto frame = decoder.next();
    REQUIRE(frame);
    const auto read = wire::decode(*frame);
    CHECK(read.index() == message.index());
    std::string again;
    wire::append(again, read);
    CHECK(again == bytes);
  }
}

TEST_CASE("a message that is cut short or damaged anywhere is one, or an Error of kind protocol") {
  std::mt19937 rng(3);
  for (const auto& message : examples()) {
    std::string bytes;
    wire::append(bytes, message);
    for (int i = 0; i < 300; ++i) {
      auto type = static_cast<std::uint8_t>(bytes[4]);
      std::string payload = bytes.substr(frame_header_size);
      if (i % 3 == 0) payload.resize(rng() % (payload.size() + 1));
      if (i % 3 == 1 && !payload.empty()) payload[rng() % payload.size()] = static_cast<char>(rng());
      if (i % 3 == 2) type = static_cast<std::uint8_t>(rng());
      try {
        static_cast<void>(wire::decode({type, payload}));
      } catch (const Error& e) { CHECK(e.code() == Errc::protocol); }
    }
  }
  const auto other = wire::version + 1;
  CHECK_THAT(protocol_error([&] { wire::require_version(other, "agent"); }),
             ContainsSubstring(fmt::format("version {}", other)));
  std::string hostile;
  wire::append(hostile, wire::Piece{1, std::string(wire::piece_size + 1, 'x')});
  FrameDecoder decoder(wire::message_types);
  decoder.feed(hostile);
  CHECK_THAT(protocol_error([&] { static_cast<void>(wire::decode(*decoder.next())); }), ContainsSubstring("too long"));
}

TEST_CASE("a host tells addresses, so many at most, and nothing else in their place") {
  const auto told = [](std::vector<std::string> addresses) {
    std::string bytes;
    wire::append(bytes, wire::Hello{.host = {.addresses = std::move(addresses)}});
    FrameDecoder decoder(wire::message_types);
    decoder.feed(bytes);
    return std::get<wire::Hello>(wire::decode(*decoder.next())).host.addresses;
  };
  const std::vector<std::string> most(wire::max_addresses, "fd00::ffff:255.255.255.255");
  CHECK(told(most) == most);
  CHECK(told({}).empty());
  CHECK_THAT(protocol_error([&] { told(std::vector<std::string>(wire::max_addresses + 1, "10.1.0.5")); }),
             ContainsSubstring("too many addresses"));
  for (const char* bad : {"", "localhost", "10.1.0.5/16", "fe80::1%eth0", "10.1.0.5\n"})
    CHECK_THAT(protocol_error([&] { told({"10.1.0.5", bad}); }), ContainsSubstring("is not an IP address"));
}

TEST_CASE("what a login shell prints before the agent's banner is told apart from frames, however it is cut") {
  std::string stream = "Last login: today\nhypertune-agen\n";
  stream += wire::banner;
  stream += "frames";
  for (std::size_t cut = 1; cut < stream.size(); ++cut) {
    wire::BannerFilter filter;
    std::string passed(filter.pass(std::string_view(stream).substr(0, cut)));
    passed += filter.pass(std::string_view(stream).substr(cut));
    CHECK(passed == "frames");
    CHECK(filter.preamble() == "Last login: today\nhypertune-agen\n");
  }
  wire::BannerFilter filter;
  CHECK_THAT(protocol_error([&] {
               for (int i = 0; i < 100000; ++i) filter.pass("garbage");
             }),
             ContainsSubstring("garbage"));
}
