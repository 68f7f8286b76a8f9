// The problems on which searchers are compared, each defined once: hypertune runs them in this program, peers ask it
// for values. All are minimised; regret is what is above `optimum`.
#pragma once

#include "further.hpp"
#include "problem.hpp"
#include "trainings.hpp"

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

namespace quality {

// ---- Functions of the literature: Surjanovic and Bingham, "Virtual Library of Simulation Experiments" ----

inline double branin(const std::vector<double>& x) {
  constexpr double pi = std::numbers::pi;
  const double inner = x[1] - 5.1 / (4 * pi * pi) * x[0] * x[0] + 5 / pi * x[0] - 6;
  return inner * inner + 10 * (1 - 1 / (8 * pi)) * std::cos(x[0]) + 10;
}

inline double hartmann6(const std::vector<double>& x) {
  static constexpr double a[4][6] = {
      {10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14}};
  static constexpr double p[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                     {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                     {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                     {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
  static constexpr double c[4] = {1.0, 1.2, 3.0, 3.2};
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    double exponent = 0;
    for (int j = 0; j < 6; ++j) exponent += a[i][j] * (x[std::size_t(j)] - p[i][j]) * (x[std::size_t(j)] - p[i][j]);
    sum -= c[i] * std::exp(-exponent);
  }
  return sum;
}

inline double rosenbrock(const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < x.size(); ++i)
    sum += 100 * std::pow(x[i + 1] - x[i] * x[i], 2) + std::pow(1 - x[i], 2);
  return sum;
}

inline double ackley(const std::vector<double>& x) {
  double squares = 0, cosines = 0;
  for (const double v : x) {
    squares += v * v;
    cosines += std::cos(2 * std::numbers::pi * v);
  }
  const auto n = double(x.size());
  return -20 * std::exp(-0.2 * std::sqrt(squares / n)) - std::exp(cosines / n) + 20 + std::numbers::e;
}

inline double levy(const std::vector<double>& x) {
  constexpr double pi = std::numbers::pi;
  const auto w = [&](std::size_t i) { return 1 + (x[i] - 1) / 4; };
  double sum = std::pow(std::sin(pi * w(0)), 2);
  for (std::size_t i = 0; i + 1 < x.size(); ++i)
    sum += std::pow(w(i) - 1, 2) * (1 + 10 * std::pow(std::sin(pi * w(i) + 1), 2));
  const double last = w(x.size() - 1);
  return sum + std::pow(last - 1, 2) * (1 + std::pow(std::sin(2 * pi * last), 2));
}

inline double styblinski_tang(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += (std::pow(v, 4) - 16 * v * v + 5 * v) / 2;
  return sum / double(x.size());
}

inline double rastrigin(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += 10 + v * v - 10 * std::cos(2 * std::numbers::pi * v);
  return sum;
}

inline double michalewicz(const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    sum -= std::sin(x[i]) * std::pow(std::sin(double(i + 1) * x[i] * x[i] / std::numbers::pi), 20);
  return sum;
}

// ---- Conditional: two models with parameters of their own and a shared one. The minimum is 0.05, the forest's best
// 0.12.

inline double mixed_value(const ht::Params& p) {
  const auto real = [&](const char* name) { return p.get<double>(name); };
  const auto whole = [&](const char* name) { return double(p.get<std::int64_t>(name)); };
  const auto square = [](double v) { return v * v; };
  const double shared = 0.02 * square(std::log10(real("reg")) + 4);
  if (p.get<std::string>("model") == "net") {
    const auto act = p.get<std::string>("act");
    return 0.05 + shared + 0.10 * square(std::log10(real("lr")) + 2) + 0.02 * square(whole("layers") - 3) +
           (act == "a"   ? 0.08
            : act == "b" ? 0.0
                         : 0.15) +
           0.5 * square(real("drop") - 0.2);
  }
  return 0.12 + shared + 1e-6 * square(whole("trees") - 300) + 0.004 * square(whole("depth") - 12) +
         0.3 * square(real("frac") - 0.7);
}

inline Problem mixed() {
  using K = Parameter::Kind;
  return {"mixed",
          0.05,
          {{.name = "model", .kind = K::choice, .options = {"net", "forest"}},
           {.name = "reg", .kind = K::log_real, .low = 1e-6, .high = 1e-1},
           {.name = "lr", .kind = K::log_real, .low = 1e-5, .high = 1, .parent = "model", .value = "net"},
           {.name = "layers", .kind = K::integer, .low = 1, .high = 8, .parent = "model", .value = "net"},
           {.name = "act", .kind = K::choice, .options = {"a", "b", "c"}, .parent = "model", .value = "net"},
           {.name = "drop", .low = 0, .high = 0.8, .parent = "model", .value = "net"},
           {.name = "trees", .kind = K::integer, .low = 10, .high = 1000, .parent = "model", .value = "forest"},
           {.name = "depth", .kind = K::integer, .low = 1, .high = 32, .parent = "model", .value = "forest"},
           {.name = "frac", .low = 0.1, .high = 1, .parent = "model", .value = "forest"}},
          mixed_value};
}

inline const std::vector<Problem>& problems() {
  static const std::vector<Problem> all = [] {
    std::vector<Problem> list;
    list.push_back({"branin",
                    0.39788735772973816,
                    {{.name = "x", .low = -5, .high = 10}, {.name = "y", .low = 0, .high = 15}},
                    [](const ht::Params& p) { return branin(numbers(p)); }});
    list.push_back(continuous("hartmann6", -3.322368011415515, 6, 0, 1, hartmann6));
    list.push_back(continuous("rosenbrock5", 0, 5, -5, 10, rosenbrock));
    list.push_back(continuous("ackley10", 0, 10, -15, 30, ackley));
    list.push_back(mixed());
    list.push_back(continuous("levy8", 0, 8, -10, 10, levy));
    list.push_back(continuous("styblinski-tang6", -39.16616570377142, 6, -5, 5, styblinski_tang));
    list.push_back(continuous("rastrigin5", 0, 5, -4.12, 6.12, rastrigin));
    list.push_back(continuous("michalewicz5", -4.687658, 5, 0, std::numbers::pi, michalewicz));
    list.push_back(continuous("rosenbrock20", 0, 20, -5, 10, rosenbrock));
    list.push_back(digits_network());
    list.push_back(cancer_network());
    list.push_back(cancer_trees());
    list.push_back(wine_ridge());
    for (Problem p : further_problems()) {
      p.further = true;
      list.push_back(std::move(p));
    }
    return list;
  }();
  return all;
}

}  // namespace quality
