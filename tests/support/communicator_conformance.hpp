// What every communicator keeps, whatever carries it. Run on each rank; throws what is wrong.
#pragma once

#include <hypertune/train/communicator.hpp>
#include <hypertune/train/detail/collective_text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace hypertune::inline v0::test {

template <class T>
double as_double(T value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(value);
  else
    return static_cast<double>(static_cast<float>(value));
}
template <class T>
T from_double(double value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return static_cast<T>(static_cast<float>(value));
}

/// Small whole numbers, which every type has exactly, and so have their sums.
inline int element_of(int rank, std::size_t i) {
  return static_cast<int>((i * 7 + static_cast<std::size_t>(rank) * 3) % 5);
}

inline double expected(Reduction reduction, int size, std::size_t i) {
  int sum = 0, low = 100, high = -100;
  for (int rank = 0; rank < size; ++rank) {
    const int value = element_of(rank, i);
    sum += value, low = std::min(low, value), high = std::max(high, value);
  }
  return reduction == Reduction::sum   ? sum
         : reduction == Reduction::min ? low
         : reduction == Reduction::max ? high
                                       : sum / static_cast<double>(size);
}

template <class T>
void must_equal(const T& is, const T& should, const std::string& what, std::size_t i) {
  if (is != should)
    throw std::runtime_error(
        fmt::format("{}: element {} is {}, and should be {}", what, i, as_double(is), as_double(should)));
}

/// By i % 5, as element_of() repeats.
template <class T>
std::vector<T> expected_values(Reduction reduction, int size) {
  std::vector<T> values;
  for (std::size_t i = 0; i < 5; ++i) {
    const double value = expected(reduction, size, i);
    values.push_back(from_double<T>(std::is_integral_v<T> ? std::trunc(value) : value));
  }
  return values;
}
template <class T>
std::vector<T> values_of(int rank, std::size_t count) {
  std::vector<T> period, values(count);
  for (std::size_t i = 0; i < 5; ++i) period.push_back(from_double<T>(element_of(rank, i)));
  for (std::size_t i = 0; i < count; ++i) values[i] = period[i % 5];
  return values;
}

/// All ranks have the same bits.
template <class T>
void same_everywhere(Communicator& communicator, const std::vector<T>& values, const std::string& what) {
  std::uint64_t hash = 1469598103934665603U;
  const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (std::size_t i = 0, length = values.size() * sizeof(T); i < length; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + i, std::min<std::size_t>(8, length - i));
    hash = (hash ^ word) * 1099511628211U;
    hash ^= hash >> 31U;
  }
  const std::int64_t mine = static_cast<std::int64_t>(hash);
  std::vector<std::int64_t> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(std::span<const std::int64_t>(&mine, 1), std::span(all));
  for (const auto other : all)
    if (other != mine) throw std::runtime_error(what + ": ranks have different bits");
}

template <class T>
void check_all_reduce(Communicator& communicator, std::size_t count) {
  for (const auto reduction : {Reduction::sum, Reduction::mean, Reduction::min, Reduction::max}) {
    const auto what = fmt::format("all_reduce of {} {} ({})", count, to_string(element_type<T>), to_string(reduction));
    auto values = values_of<T>(communicator.rank(), count);
    communicator.all_reduce(std::span(values), reduction);
    const auto should = expected_values<T>(reduction, communicator.size());
    for (std::size_t i = 0; i < count; ++i) must_equal(values[i], should[i % 5], what, i);
    same_everywhere(communicator, values, what);
  }
}

template <class T>
void check_moves(Communicator& communicator, std::size_t count) {
  const int size = communicator.size(), rank = communicator.rank();
  const auto n = static_cast<std::size_t>(size), me = static_cast<std::size_t>(rank);
  const auto name = to_string(element_type<T>);
  std::vector<T> mine, all(count * n);
  for (int root = 0; root < size; ++root) {
    mine = values_of<T>(rank, count);
    communicator.broadcast(std::span(mine), root);
    if (mine != values_of<T>(root, count))
      throw std::runtime_error(fmt::format("broadcast of {} {} from {} is wrong", count, name, root));
  }
  mine = values_of<T>(rank, count);
  communicator.all_gather(std::span<const T>(mine), std::span(all));
  for (int from = 0; from < size; ++from)
    if (const auto part = all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(from) * count);
        !std::equal(part, part + static_cast<std::ptrdiff_t>(count), values_of<T>(from, count).begin()))
      throw std::runtime_error(fmt::format("all_gather of {} {}: the part of {} is wrong", count, name, from));
  all = values_of<T>(rank, count * n);
  const auto before = all;
  communicator.reduce_scatter(std::span<const T>(all), std::span(mine), Reduction::sum);
  const auto should = expected_values<T>(Reduction::sum, size);
  const auto what = fmt::format("reduce_scatter of {} {}", count, name);
  for (std::size_t i = 0; i < count; ++i) must_equal(mine[i], should[(me * count + i) % 5], what, i);
  if (all != before) throw std::runtime_error("reduce_scatter changed its input");
}

template <class T>
void check_type(Communicator& communicator, bool large) {
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{1000}, std::size_t{16411}}) {
    check_all_reduce<T>(communicator, count);
    check_moves<T>(communicator, count);
  }
  if (!large) return;
  check_all_reduce<T>(communicator, std::size_t{1} << 20U);
  check_moves<T>(communicator, (std::size_t{1} << 18U) + 1);
}

/// Numbers whose sums are rounded: equal on all ranks to the bit, twice the same, and near the true ones.
inline void check_rounding(Communicator& communicator, std::size_t count) {
  const auto fill = [&](int rank) {
    std::mt19937 random(static_cast<unsigned>(rank) + 1);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (auto& value : values) value = normal(random);
    return values;
  };
  std::vector<double> sums(count);
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const auto values = fill(rank);
    for (std::size_t i = 0; i < count; ++i) sums[i] += static_cast<double>(values[i]);
  }
  auto first = fill(communicator.rank()), second = first;
  communicator.all_reduce(std::span(first));
  communicator.all_reduce(std::span(second));
  if (std::memcmp(first.data(), second.data(), count * sizeof(float)) != 0)
    throw std::runtime_error("the same all_reduce twice has two results");
  same_everywhere(communicator, first, fmt::format("all_reduce of {} rounded", count));
  for (std::size_t i = 0; i < count; ++i)
    if (std::abs(static_cast<double>(first[i]) - sums[i]) > 1e-5)
      throw std::runtime_error(fmt::format("all_reduce: {} is not near {}", first[i], sums[i]));
}

/// The mean of numbers whose sum does not fit, NaN of any rank in all reductions.
inline void check_edges(Communicator& communicator) {
  for (const std::size_t count : {std::size_t{2}, std::size_t{40000}}) {
    std::vector<std::uint8_t> bytes(count, 200);
    communicator.all_reduce(std::span(bytes), Reduction::mean);
    must_equal<std::uint8_t>(bytes.back(), 200, "mean of uint8", count - 1);
    std::vector<std::int32_t> ints(count, -2147483647);
    communicator.all_reduce(std::span(ints), Reduction::mean);
    must_equal<std::int32_t>(ints.back(), -2147483647, "mean of int32", count - 1);
    std::vector<Half> halves(count, Half(60000.0F));
    communicator.all_reduce(std::span(halves), Reduction::mean);
    must_equal(halves.back(), Half(60000.0F), "mean of float16", count - 1);
    for (const auto reduction : {Reduction::sum, Reduction::mean, Reduction::min, Reduction::max}) {
      std::vector<float> values(count, 1.0F);
      if (communicator.rank() == communicator.size() - 1) values.back() = std::nanf("");
      communicator.all_reduce(std::span(values), reduction);
      if (!std::isnan(values.back())) throw std::runtime_error("a NaN is lost");
    }
  }
  try {
    float value = 0;
    communicator.broadcast(std::span(&value, 1), communicator.size());
    throw std::runtime_error("a broadcast from nobody");
  } catch (const Error& error) {
    if (error.code() != Errc::usage) throw;
  }
}

/// Started and blocking operations take turns as they came.
inline void check_order(Communicator& communicator) {
  const int size = communicator.size();
  std::vector<std::int64_t> started(40);
  std::vector<int> finished;
  std::promise<void> last;
  for (std::size_t i = 0; i < started.size(); ++i) {
    started[i] = static_cast<std::int64_t>(i);
    communicator.start(collective::AllReduce{&started[i], 1, ElementType::int64, Reduction::sum},
                       [&, i](const std::exception_ptr& error) {
                         finished.push_back(error ? -1 : static_cast<int>(i));
                         if (i + 1 == started.size()) last.set_value();
                       });
    if (i % 7 == 0) {
      const auto sum = communicator.all_reduce(static_cast<std::int64_t>(1000 + i));
      must_equal<std::int64_t>(sum, size * static_cast<std::int64_t>(1000 + i), "all_reduce among started ones", i);
      must_equal<std::int64_t>(started[i], size * static_cast<std::int64_t>(i), "one that was started before", i);
    }
  }
  last.get_future().wait();
  for (std::size_t i = 0; i < started.size(); ++i) {
    must_equal<int>(finished[i], static_cast<int>(i), "the order of handlers", i);
    must_equal<std::int64_t>(started[i], size * static_cast<std::int64_t>(i), "started all_reduce", i);
  }
}

inline void check_communicator(Communicator communicator) {
  check_type<float>(communicator, true);
  check_type<double>(communicator, false);
  check_type<Half>(communicator, true);
  check_type<BFloat16>(communicator, false);
  check_type<std::int32_t>(communicator, false);
  check_type<std::int64_t>(communicator, false);
  check_type<std::uint8_t>(communicator, true);
  check_rounding(communicator, 100);
  check_rounding(communicator, 300'001);
  check_edges(communicator);
  check_order(communicator);
  communicator.barrier();
}

}  // namespace hypertune::inline v0::test
