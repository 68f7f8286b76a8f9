// Endpoints, secrets, certificates, rates, ranges.
#include "transfer/intervals.hpp"
#include "transfer/target.hpp"
#include "transfer_support.hpp"

#include <unistd.h>

#include <chrono>
#include <random>

using namespace hypertune;
using namespace hypertune::test;
using namespace std::chrono_literals;
using hypertune::detail::ByteRange;
using hypertune::detail::Intervals;

TEST_CASE("endpoints are written and read back, without their token") {
  const std::string pin(64, 'a');
  for (const std::string& text :
       {std::string("unix:/run/x.sock"), "https+unix:/run/x.sock#" + pin, std::string("http://127.0.0.1:4711"),
        "https://[::1]:1#" + pin, "https://host.example:65535#" + pin, std::string("file:/shared/digits")}) {
    auto endpoint = Endpoint::parse(text);
    CHECK(endpoint.to_string() == text);
    endpoint.token = Secret::generate();
    CHECK(endpoint.to_string() == text);
  }
  for (const char* text : {"", "unix:", "file:", "http://", "http://host", "http://host:0", "http://host:65536",
                           "http://host:1x", "http://::1:5", "https://host:1", "https://host:1#abc", "ftp://host:1",
                           "http://a/b:1", "unix:/a\nb", "http://:1"})
    CHECK(error_of([&] { static_cast<void>(Endpoint::parse(text)); }).first == Errc::input);
}

TEST_CASE("a secret comes from a private file or a descriptor") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "token";
  const Secret secret = Secret::generate();
  CHECK(secret.reveal().size() == 64);
  CHECK_FALSE(secret.matches(Secret::generate().reveal()));
  secret.write_file(path);
  CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::mask) ==
        static_cast<std::filesystem::perms>(0600));
  CHECK(Secret::from_file(path).matches(secret.reveal()));
  CHECK(error_of([&] { secret.write_file(path); }).first == Errc::io);
  std::filesystem::permissions(path, static_cast<std::filesystem::perms>(0640));
  CHECK(error_of([&] { static_cast<void>(Secret::from_file(path)); }).first == Errc::usage);
  CHECK(error_of([&] { static_cast<void>(Secret::from_file(directory.path() / "none")); }).first == Errc::io);
  CHECK(error_of([&] { static_cast<void>(Secret::from_file(directory.path())); }).first == Errc::usage);
  for (const char* text : {"", "short", "spaces are not allowed here", "sixteen chars\t\t\t\t"})
    CHECK(error_of([&] { static_cast<void>(Secret(text)); }).first == Errc::usage);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  REQUIRE(::write(ends[1], "0123456789abcdef0\nnext", 22) == 22);
  CHECK(Secret::from_descriptor(ends[0]).reveal() == "0123456789abcdef0");
  char rest[8];
  CHECK(::read(ends[0], rest, sizeof rest) == 4);  // what follows is left alone
  ::close(ends[1]);
  CHECK(error_of([&] { static_cast<void>(Secret::from_descriptor(ends[0])); }).first == Errc::usage);
  ::close(ends[0]);
  CHECK(error_of([&] { static_cast<void>(Secret::from_descriptor(ends[0])); }).first == Errc::io);
  Secret moved = secret;
  const Secret taken = std::move(moved);
  CHECK(taken.matches(secret.reveal()));
}

TEST_CASE("a certificate is kept in a private file and known by its fingerprint") {
  TemporaryDirectory directory;
  const auto identity = TlsIdentity::generate(std::string(200, 'e'));
  CHECK(identity.fingerprint().size() == 64);
  CHECK(identity.fingerprint() != TlsIdentity::generate("e").fingerprint());
  identity.write_file(directory.path() / "tls");
  CHECK(TlsIdentity::from_file(directory.path() / "tls").fingerprint() == identity.fingerprint());
  CHECK(TlsIdentity::from_file(directory.path() / "tls").private_key == identity.private_key);
  std::filesystem::permissions(directory.path() / "tls", static_cast<std::filesystem::perms>(0644));
  CHECK(error_of([&] { static_cast<void>(TlsIdentity::from_file(directory.path() / "tls")); }).first == Errc::usage);
  const auto wrong = directory.path() / "wrong";
  write_file(wrong,
             "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n-----END "
             "PRIVATE KEY-----\n");
  std::filesystem::permissions(wrong, static_cast<std::filesystem::perms>(0600));
  CHECK(error_of([&] { static_cast<void>(TlsIdentity::from_file(wrong)); }).first == Errc::input);
  TwoNodes nodes;
  auto options = nodes.options();
  options.tls = TlsIdentity{.certificate = identity.certificate, .private_key = TlsIdentity::generate("x").private_key};
  CHECK(error_of([&] { CheckpointServer server(options); }).first == Errc::input);
}

TEST_CASE("a bucket gives its rate, and forgives when the rate changes") {
  const auto start = TokenBucket::Clock::now();
  TokenBucket none;
  CHECK(none.take(1'000'000'000, start) == start);
  TokenBucket bucket(1000);
  CHECK(bucket.take(1000, start) <= start + 1s);
  CHECK(bucket.take(1000, start) > start + 1900ms);
  CHECK(bucket.take(1000, start + 10s) <= start + 11s);  // an idle time is not saved up
  CHECK(bucket.slice(1 << 20) == 4096);
  bucket.set_rate(1'000'000'000);
  CHECK(bucket.take(1000, start + 10s) < start + 10s + 1ms);
  CHECK(bucket.slice(1 << 20) == 1 << 20);
}

TEST_CASE("intervals are a set of bytes") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    constexpr std::uint64_t total = 40;
    Intervals intervals;
    std::vector<bool> model(total);
    for (int step = 0; step < 25; ++step) {
      const std::uint64_t begin = random() % total, end = begin + random() % (total - begin + 1);
      const bool add = random() % 3 != 0;
      if (add)
        intervals.add({begin, end});
      else
        intervals.remove({begin, end});
      for (auto i = begin; i < end; ++i) model[i] = add;
      REQUIRE(intervals.size() == static_cast<std::uint64_t>(std::count(model.begin(), model.end(), true)));
      const std::uint64_t from = random() % total;
      std::uint64_t reach = from;
      while (reach < total && model[reach]) ++reach;
      REQUIRE(intervals.reaches(from) == reach);
      const std::uint64_t to = from + random() % (total - from);
      REQUIRE(intervals.contains({from, to}) == (to <= reach));
      bool any = false;
      for (auto i = from; i < to; ++i) any = any || model[i];
      REQUIRE(intervals.overlaps({from, to}) == any);
      std::vector<bool> rebuilt(total, true);
      for (const ByteRange& gap : intervals.gaps(total))
        for (auto i = gap.begin; i < gap.end; ++i) rebuilt[i] = false;
      REQUIRE(rebuilt == model);
    }
  }
}

TEST_CASE("targets and lines are written and read back") {
  using detail::Target;
  const CheckpointInfo info{
      .trial = 12, .steps = 0, .name = "step-3 (ä&=%)", .bytes = 0, .digest = std::string(32, '0')};
  for (const auto what : {Target::What::status, Target::What::manifest, Target::What::chunks, Target::What::data}) {
    const Target target{.what = what, .info = info, .deep = what == Target::What::status};
    const auto back = detail::parse_target(to_string(target));
    REQUIRE(back);
    CHECK(back->what == what);
    CHECK(back->info == info);
    CHECK(back->deep == target.deep);
  }
  auto full = info;
  full.steps = 7;
  full.bytes = 99;
  std::string line = detail::info_line(full);
  line.pop_back();
  CHECK(detail::parse_info_line(line, 12) == full);
  for (const char* text : {"", "1", "1 2", "-1 2 00000000000000000000000000000000 a",
                           "1 2 00000000000000000000000000000000 ../a", "1 2 zz a"})
    CHECK_FALSE(detail::parse_info_line(text, 1));
}
