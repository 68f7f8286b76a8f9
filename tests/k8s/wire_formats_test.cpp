// Bytes from the API server: answers of HTTP, messages of channels, Status objects. However they are cut.
#include "channel_frames.hpp"
#include "http.hpp"
#include "k8s/support/access_files.hpp"
#include "status.hpp"
#include "support/test.hpp"

#include <hypertune/k8s/request.hpp>

#include <boost/json.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace hypertune;
using namespace hypertune::k8s;
using namespace hypertune::k8s::detail;
using namespace hypertune::test;

namespace {

const std::string chunked =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nRetry-After: 7\r\n\r\n5\r\nhello\r\n1\r\n "
    "\r\n5\r\nworld\r\n0\r\n\r\n";
const std::string sized = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nX-More: a\r\n\r\nnone";

}  // namespace

TEST_CASE("an answer is the same however its bytes are cut") {
  for (const auto& [text, status, body] :
       {std::tuple(chunked, 200, std::string("hello world")), std::tuple(sized, 404, std::string("none"))})
    for (std::size_t step = 1; step <= text.size(); ++step) {
      ResponseReader reader(100);
      std::size_t used = 0;
      for (std::size_t at = 0; at < text.size(); at += step)
        used += reader.feed(std::string_view(text).substr(at, step));
      REQUIRE(used == text.size());
      REQUIRE(reader.done());
      REQUIRE(reader.status() == status);
      REQUIRE(reader.body() == body);
      REQUIRE(reader.keep_alive());
      REQUIRE(reader.retry_after() == (status == 200 ? std::optional(7.0) : std::nullopt));
    }
}

TEST_CASE("an answer that is cut off is not complete, one without a length is at its end") {
  for (std::size_t size = 0; size < chunked.size(); ++size) {
    ResponseReader reader(0);
    reader.feed(std::string_view(chunked).substr(0, size));
    REQUIRE_FALSE(reader.done());
    REQUIRE_FALSE(reader.end());
  }
  ResponseReader open(0);
  open.feed("HTTP/1.1 200 OK\r\n\r\nsome");
  CHECK_FALSE(open.done());
  CHECK(open.end());
  CHECK(open.body() == "some");
  CHECK_FALSE(open.keep_alive());
  ResponseReader more(0);
  CHECK(more.feed(sized + "HTTP/1.1") == sized.size());
}

TEST_CASE("answers have bounds, and what is no HTTP is an error") {
  ResponseReader body(3);
  CHECK_THAT(problem([&] { body.feed(sized); }), ContainsSubstring("longer than is allowed"));
  ResponseReader pieces(8);
  CHECK_THAT(problem([&] { pieces.feed(chunked); }), ContainsSubstring("longer than is allowed"));
  ResponseReader headers(0);
  CHECK_THAT(problem([&] {
               headers.feed("HTTP/1.1 200 OK\r\n");
               for (int i = 0; i < 100'000; ++i) headers.feed("X-" + std::to_string(i) + ": abcdefgh\r\n");
             }),
             ContainsSubstring("no HTTP"));
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
  std::string trailer = "0\r\n";
  while (trailer.size() < std::size_t{64} << 10U) trailer += "X: " + std::string(1000, 'a') + "\r\n";
  for (const std::size_t step : {trailer.size() + head.size() + 2, std::size_t{10'000}}) {
    const std::string text = head + trailer + "\r\n";
    ResponseReader reader(0);
    CHECK_THAT(problem([&] {
                 for (std::size_t at = 0; at < text.size(); at += step) reader.feed(text.substr(at, step));
               }),
               ContainsSubstring("no HTTP"));
    CHECK(reader.body() == "abc");
  }
  ResponseReader long_body(0);
  long_body.feed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n30d40\r\n" + std::string(200'000, 'b') +
                 "\r\n0\r\nX: " + std::string(40'000, 'a') + "\r\n\r\n");
  CHECK(long_body.done());
  CHECK(long_body.body().size() == 200'000);
  ResponseReader other(0);
  CHECK_THAT(problem([&] { other.feed("SSH-2.0-OpenSSH\r\n\r\n"); }), ContainsSubstring("no HTTP"));
}

TEST_CASE("a request is text that no value can break") {
  RequestText text{.method = "POST",
                   .target = "/x",
                   .host = "h:1",
                   .user_agent = "me",
                   .content_type = "application/json",
                   .body = "{}"};
  CHECK(to_bytes(text, {{"Authorization", "Bearer t"}}) ==
        "POST /x HTTP/1.1\r\nHost: h:1\r\nUser-Agent: me\r\nAccept: application/json\r\nAuthorization: Bearer t\r\n"
        "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
  const std::string told = problem([&] { to_bytes(text, {{"Authorization", "Bearer a\r\nX: y"}}); });
  CHECK_THAT(told, ContainsSubstring("'Authorization'"));
  CHECK_THAT(told, !ContainsSubstring("Bearer"));
}

TEST_CASE("pieces of messages belong to the channel that their message names") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string out, err, got_out, got_err;
    ChannelReader reader;
    for (int message = 0; message < 20; ++message) {
      const bool is_out = random() % 2 == 0;
      std::string text(random() % 10, 'x');
      for (char& c : text) c = static_cast<char>(random());
      (is_out ? out : err) += text;
      std::string rest = (is_out ? '\1' : '\2') + text;
      do {
        const std::size_t size = random() % (rest.size() + 1);
        const std::string piece = rest.substr(0, size);
        rest.erase(0, size);
        if (const auto read = reader.take(piece, rest.empty())) {
          REQUIRE(read->channel == (is_out ? 1 : 2));
          (is_out ? got_out : got_err) += read->bytes;
        }
      } while (!rest.empty());
    }
    REQUIRE(got_out == out);
    REQUIRE(got_err == err);
  }
  ChannelReader reader;
  CHECK_FALSE(reader.take("", true));
  CHECK_FALSE(reader.take("\x01", true));
  CHECK(reader.take("\x03{", true)->channel == channel::status);
}

TEST_CASE("the status channel says how a command ended") {
  const auto success = read_command_end(R"({"metadata":{},"status":"Success"})");
  CHECK(success.exited);
  CHECK(success.code == 0);
  const auto failure = read_command_end(
      R"({"status":"Failure","message":"command terminated with non-zero exit code","reason":"NonZeroExitCode",)"
      R"("details":{"causes":[{"reason":"ExitCode","message":"137"}]}})");
  CHECK(failure.exited);
  CHECK(failure.code == 137);
  const auto refused =
      read_command_end(R"({"status":"Failure","message":"container not\nfound","reason":"InternalError","code":500})");
  CHECK(refused.known);
  CHECK_FALSE(refused.exited);
  CHECK(refused.status == 500);
  CHECK(refused.message == "container not found");
  for (const char* text :
       {"", "error executing command", "[]", R"({"status":"Failure"})",
        R"({"reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"1x"}]}})",
        R"({"reason":"NonZeroExitCode","details":{"causes":[1, null]}})", R"({"details":[]})"}) {
    INFO(text);
    CHECK_FALSE(read_command_end(text).exited);
  }
}

TEST_CASE("an error of the API server is its own message in one line") {
  const auto error = api_error(
      403,
      R"({"kind":"Status","status":"Failure","message":"pods is forbidden:\nUser \"x\"","reason":"Forbidden","code":403})",
      "GET /api/v1/pods");
  CHECK(std::string(error.what()) == "pods is forbidden: User \"x\" (GET /api/v1/pods)");
  CHECK(error.forbidden());
  CHECK(error.code() == Errc::usage);
  CHECK(api_error(409, R"({"kind":"Status","reason":"AlreadyExists"})", "").already_exists());
  CHECK(api_error(409, R"({"kind":"Status","reason":"Conflict"})", "").conflict());
  const auto with_url = api_error(
      500, R"({"kind":"Status","message":"Post \"https://n:10250/exec/a?command=sh&command=secret\": EOF, why? /?"})",
      "");
  CHECK_THAT(with_url.what(), ContainsSubstring("Post \"https://n:10250/exec/a\": EOF, why? /?"));
  CHECK(api_error(503, "", "GET /x").code() == Errc::io);
  CHECK(std::string(api_error(503, "", "GET /x").what()) == "the API server answered HTTP 503 (GET /x)");
  CHECK(std::string(api_error(502, std::string(5000, 'x'), "GET /x").what()) ==
        "the API server answered HTTP 502 (GET /x)");
  CHECK(api_error(500, std::string(1 << 20, 'x'), "").details().size() == 1 << 16);
  CHECK(one_line("a\n\tb \x7f"
                 "c\r\n") == "a b c");
  CHECK(one_line("äöü", 3) == "ä…");
  CHECK(one_line("abc", 3) == "abc");
}

TEST_CASE("an answer that is no JSON is an error of the protocol") {
  CHECK(k8s::Answer{.body = "{\"a\": 1}"}.json().at("a") == 1);
  CHECK_THAT(problem([] { static_cast<void>(k8s::Answer{.body = "<html>"}.json()); }),
             ContainsSubstring("no JSON: '<html>'"));
  CHECK_THAT(
      problem([] { static_cast<void>(k8s::Answer{.body = std::string(100, '[') + std::string(100, ']')}.json()); }),
      ContainsSubstring("no JSON"));
}
