// What follows an attempt of a call, pauses, and the limit of calls a second.
#include "retry.hpp"

#include "support/test.hpp"

using namespace hypertune;
using namespace hypertune::k8s;
using namespace hypertune::k8s::detail;

namespace {

using Kind = Retry::Decision::Kind;

Outcome answered(int status) { return {.kind = Outcome::Kind::answered, .status = status}; }
const Outcome unsent{.kind = Outcome::Kind::unsent};
const Outcome lost{.kind = Outcome::Kind::lost};
const Outcome impossible{.kind = Outcome::Kind::impossible};

Kind after(Method method, bool named, const Outcome& outcome, bool exists = false) {
  Retry retry(method, named, 100, 10);
  return retry.after(outcome, exists, 0, 0.5).kind;
}

}  // namespace

TEST_CASE("what can be repeated is, and what may have been done is not") {
  for (const Method method : {Method::get, Method::put, Method::remove}) {
    CHECK(after(method, false, unsent) == Kind::again);
    CHECK(after(method, false, lost) == Kind::again);
    for (const int status : {429, 500, 502, 503, 504}) CHECK(after(method, false, answered(status)) == Kind::again);
    for (const int status : {400, 403, 404, 409, 422, 501}) CHECK(after(method, false, answered(status)) == Kind::done);
  }
  for (const Method method : {Method::post, Method::patch}) {
    CHECK(after(method, false, unsent) == Kind::again);
    CHECK(after(method, false, answered(429)) == Kind::again);
    CHECK(after(method, false, lost) == Kind::done);
    for (const int status : {500, 503, 504}) CHECK(after(method, false, answered(status)) == Kind::done);
  }
  CHECK(after(Method::post, true, lost) == Kind::again);
  CHECK(after(Method::post, true, answered(504)) == Kind::again);
  CHECK(after(Method::post, true, answered(409), true) == Kind::existed);
  CHECK(after(Method::post, true, answered(409), false) == Kind::done);
  CHECK(after(Method::post, false, answered(409), true) == Kind::done);
  CHECK(after(Method::get, true, impossible) == Kind::done);
}

TEST_CASE("credentials are renewed once") {
  Retry retry(Method::post, false, 100, 10);
  CHECK(retry.after(answered(401), false, 0, 0).kind == Kind::renew);
  CHECK(retry.after(answered(401), false, 0, 0).kind == Kind::done);
}

TEST_CASE("pauses grow, have a bound, differ, and end with the call's time") {
  Retry retry(Method::get, false, 30, 4);
  double at = 0, last = 0;
  int count = 0;
  for (;; ++count) {
    const auto next = retry.after(unsent, false, at, 0.999);
    if (next.kind == Kind::done) break;
    CHECK(next.pause >= last * 0.99);
    CHECK(next.pause <= 4);
    at += last = next.pause;
    REQUIRE(count < 100);
  }
  CHECK(at <= 30);
  CHECK(count > 8);
  BackOff low, high;
  CHECK(low.pause(0) == Approx(0.05));
  CHECK(high.pause(0.999) == Approx(0.1).epsilon(0.01));
  CHECK(low.pause(0) == Approx(0.1));
  low.reset();
  CHECK(low.pause(0) == Approx(0.05));
}

TEST_CASE("the server's own wish counts, within bounds") {
  Retry retry(Method::post, false, 100, 10);
  auto outcome = answered(429);
  outcome.retry_after = 3;
  const auto first = retry.after(outcome, false, 0, 0.5);
  CHECK(first.pause >= 3);
  CHECK(first.pause < 4);
  outcome.retry_after = 3600;
  CHECK(retry.after(outcome, false, 0, 0.5).pause < 16);
  CHECK(retry.after(outcome, false, 95, 0.5).kind == Kind::done);
}

TEST_CASE("so many calls a second on average, and some at once") {
  RateLimit limit(10, 5);
  for (int i = 0; i < 5; ++i) CHECK(limit.take(100) == 0);
  CHECK(limit.take(100) == Approx(0.1));
  CHECK(limit.take(100) == Approx(0.2));
  CHECK(limit.take(100.2) == Approx(0.1));
  for (int i = 0; i < 5; ++i) CHECK(limit.take(200) == 0);
  CHECK(limit.take(200) > 0);
  CHECK(limit.take(0) > 0);  // a clock that goes back gives nothing
  RateLimit none(0, 0);
  for (int i = 0; i < 1000; ++i) CHECK(none.take(0) == 0);
}
