#include "support/test.hpp"

#include <hypertune/trial/device_lost.hpp>
#include <hypertune/trial/failure.hpp>

#include <exception>
#include <stdexcept>
#include <string>

namespace ht = hypertune;

namespace {

template <class Throwing>
ht::Cause cause_of(const Throwing& throwing) {
  try {
    throwing();
  } catch (...) { return ht::cause_of_current_exception(); }
  return {};
}

/// Throws `outer` with what `inner` throws in it.
template <class Inner>
void nest(const std::string& outer, const Inner& inner) {
  try {
    inner();
  } catch (...) { std::throw_with_nested(std::runtime_error(outer)); }
}

}  // namespace

TEST_CASE("a cause has the texts of nested exceptions, and the source of the innermost") {
  const auto missing = [] { throw std::runtime_error("no such file"); };
  const auto nested = cause_of([&] { nest("epoch 3", [&] { nest("cannot read the images", missing); }); });
  CHECK(nested.text == "epoch 3: cannot read the images: no such file");
  CHECK(nested.source == ht::FailureSource::user);

  const auto lost = cause_of([] { nest("forward", [] { throw ht::DeviceLost("the GPU is gone"); }); });
  CHECK(lost.text == "forward: the GPU is gone");
  CHECK(lost.source == ht::FailureSource::infrastructure);

  CHECK(cause_of([] { nest("odd", [] { throw 3; }); }).text == "odd: an exception that is not a std::exception");
  CHECK(cause_of([&] { nest("long", [] { throw std::runtime_error(std::string(9000, 'x')); }); }).text.size() == 4096);
  CHECK(cause_of(missing).text == "no such file");
}
