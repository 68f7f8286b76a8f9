// Further functions of the literature, written down when hypertune's constants stood: what its searchers are worth on
// what they were not made for. benchmarks/README.md says what has followed from them since. Definitions and minima:
// Surjanovic and Bingham, "Virtual Library of Simulation Experiments"; Jamil and Yang, "A literature survey of
// benchmark functions for global optimization problems", 2013.
#pragma once

#include "problem.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

namespace quality {

namespace further {

using Values = std::vector<double>;
inline constexpr double pi = std::numbers::pi;
inline double square(double x) { return x * x; }

inline double camel(const Values& v) {
  const double x = v[0], y = v[1];
  return (4 - 2.1 * x * x + std::pow(x, 4) / 3) * x * x + x * y + (4 * y * y - 4) * y * y;
}
inline double goldstein_price(const Values& v) {
  const double x = v[0], y = v[1];
  return (1 + square(x + y + 1) * (19 - 14 * x + 3 * x * x - 14 * y + 6 * x * y + 3 * y * y)) *
         (30 + square(2 * x - 3 * y) * (18 - 32 * x + 12 * x * x + 48 * y - 36 * x * y + 27 * y * y));
}
inline double beale(const Values& v) {
  const double x = v[0], y = v[1];
  return square(1.5 - x + x * y) + square(2.25 - x + x * y * y) + square(2.625 - x + x * y * y * y);
}
inline double eggholder(const Values& v) {
  const double x = v[0], y = v[1] + 47;
  return -y * std::sin(std::sqrt(std::fabs(x / 2 + y))) - x * std::sin(std::sqrt(std::fabs(x - y)));
}
inline double drop_wave(const Values& v) {
  const double squares = square(v[0]) + square(v[1]);
  return -(1 + std::cos(12 * std::sqrt(squares))) / (squares / 2 + 2);
}
inline double bukin(const Values& v) {
  return 100 * std::sqrt(std::fabs(v[1] - 0.01 * v[0] * v[0])) + 0.01 * std::fabs(v[0] + 10);
}
inline double easom(const Values& v) {
  return -std::cos(v[0]) * std::cos(v[1]) * std::exp(-square(v[0] - pi) - square(v[1] - pi));
}
inline double holder_table(const Values& v) {
  const double distance = std::hypot(v[0], v[1]);
  return -std::fabs(std::sin(v[0]) * std::cos(v[1]) * std::exp(std::fabs(1 - distance / pi)));
}
inline double shubert(const Values& v) {
  double product = 1;
  for (const double x : v) {
    double sum = 0;
    for (int i = 1; i <= 5; ++i) sum += i * std::cos((i + 1) * x + i);
    product *= sum;
  }
  return product;
}
inline double shekel(const Values& v) {
  static constexpr std::array<double, 10> first = {4, 1, 8, 6, 3, 2, 5, 8, 6, 7},
                                          second = {4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6},
                                          depth = {.1, .2, .2, .4, .4, .6, .3, .7, .5, .5};
  double sum = 0;
  for (std::size_t i = 0; i < depth.size(); ++i)
    sum -= 1 / (depth[i] + square(v[0] - first[i]) + square(v[1] - second[i]) + square(v[2] - first[i]) +
                square(v[3] - second[i]));
  return sum;
}
inline double dixon_price(const Values& v) {
  double sum = square(v[0] - 1);
  for (std::size_t i = 1; i < v.size(); ++i) sum += double(i + 1) * square(2 * v[i] * v[i] - v[i - 1]);
  return sum;
}
inline double zakharov(const Values& v) {
  double squares = 0, slope = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    squares += square(v[i]);
    slope += 0.5 * double(i + 1) * v[i];
  }
  return squares + square(slope) + square(square(slope));
}
inline double powell(const Values& v) {
  double sum = 0;
  for (std::size_t i = 0; i + 3 < v.size(); i += 4)
    sum += square(v[i] + 10 * v[i + 1]) + 5 * square(v[i + 2] - v[i + 3]) + square(square(v[i + 1] - 2 * v[i + 2])) +
           10 * square(square(v[i] - v[i + 3]));
  return sum;
}
inline double alpine(const Values& v) {
  double sum = 0;
  for (const double x : v) sum += std::fabs(x * std::sin(x) + 0.1 * x);
  return sum;
}
inline double weighted_distances(const Values& v) {
  double sum = 0;
  for (std::size_t i = 0; i < v.size(); ++i) sum += double(i + 1) * std::fabs(v[i] - 0.3 * double(i));
  return sum;
}
inline double sum_of_powers(const Values& v) {
  double sum = 0;
  for (std::size_t i = 0; i < v.size(); ++i) sum += std::pow(std::fabs(v[i] - 0.2), double(i + 2));
  return sum;
}
inline double salomon(const Values& v) {
  double squares = 0;
  for (const double x : v) squares += square(x);
  return 1 - std::cos(2 * pi * std::sqrt(squares)) + 0.1 * std::sqrt(squares);
}
inline double trid(const Values& v) {
  double sum = square(v[0] - 1);
  for (std::size_t i = 1; i < v.size(); ++i) sum += square(v[i] - 1) - v[i] * v[i - 1];
  return sum;
}

}  // namespace further

inline std::vector<Problem> further_problems() {
  using namespace further;
  const auto plane = [](const char* name, double optimum, const Parameter& x, const Parameter& y,
                        double (*f)(const Values&)) {
    return Problem{name, optimum, {x, y}, [f](const ht::Params& p) { return f(numbers(p)); }};
  };
  return {plane("camel", -1.0316284534898774, {.name = "x", .low = -3, .high = 3}, {.name = "y", .low = -2, .high = 2},
                camel),
          plane("bukin", 0, {.name = "x", .low = -15, .high = 5}, {.name = "y", .low = -3, .high = 3}, bukin),
          continuous("goldstein-price", 3, 2, -2, 2, goldstein_price),
          continuous("beale", 0, 2, -4.5, 4.5, beale),
          continuous("eggholder", -959.6406627208506, 2, -512, 512, eggholder),
          continuous("drop wave", -1, 2, -5.12, 5.12, drop_wave),
          continuous("easom", -1, 2, -10, 10, easom),
          continuous("holder table", -19.208502567886743, 2, -10, 10, holder_table),
          continuous("shubert", -186.7309088310240, 2, -5, 10, shubert),
          continuous("shekel", -10.536409816692046, 4, 0, 10, shekel),
          continuous("dixon-price6", 0, 6, -10, 10, dixon_price),
          continuous("zakharov8", 0, 8, -5, 10, zakharov),
          continuous("powell8", 0, 8, -4, 5, powell),
          continuous("alpine5", 0, 5, -4, 10, alpine),
          continuous("weighted distances4", 0, 4, -3, 5, weighted_distances),
          continuous("sum of powers5", 0, 5, -1, 1, sum_of_powers),
          continuous("salomon4", 0, 4, -8, 12, salomon),
          continuous("trid6", -50, 6, -36, 36, trid)};
}

}  // namespace quality
