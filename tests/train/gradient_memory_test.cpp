#include "support/test.hpp"

#include <hypertune/train/gradient_memory.hpp>
#include <hypertune/train/kernels.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

using namespace hypertune;

namespace {

/// body(T{}) for each type.
void for_each_type(const auto& body) {
  body(float{});
  body(double{});
  body(Half{});
  body(BFloat16{});
}
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
template <class T>
std::vector<T> elements(const std::vector<double>& values) {
  std::vector<T> elements;
  for (const double value : values) elements.push_back(T(static_cast<Wide<T>>(value)));
  return elements;
}
template <class T>
std::vector<double> values(const std::vector<T>& elements) {
  std::vector<double> values;
  for (const T& element : elements) values.push_back(static_cast<double>(static_cast<Wide<T>>(element)));
  return values;
}

std::array<GradientPiece, 1> piece(void* to, const void* from, const void* plus, std::size_t count) {
  return {{{to, from, plus, count}}};
}

/// What CudaGradientMemory does, by the same kernels in loops.
class MemoryOfKernels final : public GradientMemory {
 public:
  std::shared_ptr<void> allocate(std::size_t bytes) override { return std::make_unique<std::byte[]>(bytes); }
  void combine(std::span<const GradientPiece> pieces, double factor, ElementType type) override {
    visit(type, [&]<class T>(T) {
      for (const auto& p : pieces)
        for_each(p.count, kernels::Combine<T>{static_cast<T*>(p.to), static_cast<const T*>(p.from), factor,
                                              static_cast<const T*>(p.plus)});
    });
  }
  void divide(std::span<const GradientPiece> pieces, double divisor, ElementType type) override {
    square(pieces, true, divisor, type);
  }
  void add_squares(std::span<const GradientPiece> pieces, ElementType type) override { square(pieces, false, 1, type); }
  double take_squares() override {
    std::vector<double> folded(3);
    double sum = 0;
    for_each(folded.size(), kernels::FoldSums{parts_.data(), parts_.size(), folded.size(), folded.data()});
    for_each(1, kernels::FoldSums{folded.data(), folded.size(), 1, &sum});
    parts_.assign(parts_.size(), 0);
    return sum;
  }
  void upload(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }

 private:
  static void visit(ElementType type, const auto& body) {
    for_each_type([&]<class T>(T) {
      if (type == element_type<T>) body(T{});
    });
  }
  static void for_each(std::size_t count, const auto& kernel) {
    for (std::size_t i = 0; i < count; ++i) kernel(i);
  }
  void square(std::span<const GradientPiece> pieces, bool divides, double divisor, ElementType type) {
    visit(type, [&]<class T>(T) {
      for (const auto& p : pieces) {
        const std::size_t threads = std::min(p.count, parts_.size());
        for_each(threads,
                 kernels::DivideAndSquare<T>{divides ? static_cast<T*>(p.to) : nullptr, static_cast<const T*>(p.from),
                                             divisor, p.count, threads, parts_.data()});
      }
    });
  }
  std::vector<double> parts_ = std::vector<double>(7);
};

TEMPLATE_TEST_CASE("combine multiplies and adds, in place or not, and reads nothing of what is not given", "",
                   HostGradientMemory, MemoryOfKernels) {
  for_each_type([]<class T>(T) {
    TestType memory;
    const auto combine = [&](std::vector<T>& to, const T* from, double factor, const T* plus) {
      memory.combine(piece(to.data(), from, plus, to.size()), factor, element_type<T>);
    };
    const auto a = elements<T>({1, -2, 3}), b = elements<T>({10, 20, 40});
    const auto nan = elements<T>({std::nan(""), std::nan(""), std::nan("")});
    std::vector<T> to = nan;
    combine(to, a.data(), 0.5, nullptr);
    CHECK(values(to) == std::vector<double>{0.5, -1, 1.5});
    combine(to, a.data(), 3, b.data());
    CHECK(values(to) == std::vector<double>{13, 14, 49});
    combine(to, a.data(), 2, to.data());
    CHECK(values(to) == std::vector<double>{15, 10, 55});
    combine(to, to.data(), 2, a.data());
    CHECK(values(to) == std::vector<double>{31, 18, 113});
    combine(to, nullptr, 7, b.data());
    CHECK(values(to) == values(b));
    combine(to, nullptr, 7, to.data());
    CHECK(values(to) == values(b));
    to = nan;
    combine(to, nullptr, std::nan(""), nullptr);
    CHECK(values(to) == std::vector<double>{0, 0, 0});
  });
}

TEMPLATE_TEST_CASE("divide gives the quotient and the sum of its squares, for any count", "", HostGradientMemory,
                   MemoryOfKernels) {
  for_each_type([]<class T>(T) {
    TestType memory;
    for (std::size_t count = 0; count < 40; ++count) {
      std::vector<double> wanted;
      double squares = 0;
      for (std::size_t i = 0; i < count; ++i) {
        wanted.push_back(static_cast<double>(i) - 7);
        squares += wanted.back() * wanted.back();
      }
      auto times_three = elements<T>(wanted);
      for (T& x : times_three) x = T(static_cast<Wide<T>>(x) * 3);
      std::vector<T> to(count);
      memory.divide(piece(to.data(), times_three.data(), nullptr, count), 3, element_type<T>);
      CHECK(memory.take_squares() == squares);
      CHECK(values(to) == wanted);
      memory.divide(piece(times_three.data(), times_three.data(), nullptr, count), 3, element_type<T>);
      CHECK(memory.take_squares() == squares);
      CHECK(values(times_three) == wanted);
      const std::array<GradientPiece, 2> twice = {
          {{nullptr, to.data(), nullptr, count}, {nullptr, to.data(), nullptr, count}}};
      memory.add_squares(twice, element_type<T>);
      CHECK(memory.take_squares() == 2 * squares);
      CHECK(memory.take_squares() == 0);
    }
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()})
      for (std::size_t at = 0; at < 11; ++at) {
        std::vector<T> some(11);
        some[at] = T(static_cast<Wide<T>>(bad));
        memory.add_squares(piece(nullptr, some.data(), nullptr, some.size()), element_type<T>);
        CHECK_FALSE(std::isfinite(memory.take_squares()));
      }
  });
}

TEST_CASE("a product of floats has the same bits, whichever way it is computed") {
  HostGradientMemory memory;
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const auto factor = std::ldexp(static_cast<float>(random() % 1000), static_cast<int>(random() % 20) - 10);
    const std::vector<float> x = {
        std::ldexp(static_cast<float>(random()) - 2e9F, static_cast<int>(random() % 250) - 170)};
    std::vector<float> to(1);
    memory.combine(piece(to.data(), x.data(), nullptr, 1), factor, ElementType::float32);
    CHECK(to[0] == static_cast<float>(static_cast<double>(x[0]) * static_cast<double>(factor)));
  }
}

TEST_CASE("a view knows its elements") {
  std::vector<Half> half(3);
  const TensorView view = std::span(half);
  CHECK(view.data == half.data());
  CHECK(view.bytes() == 6);
  CHECK(view.type == ElementType::float16);
}

}  // namespace
