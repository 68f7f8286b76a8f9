// Real trainings as problems: what a few milliseconds of learning from a real table or from handwritten digits come to.
// Deterministic, so that every searcher meets the same function.
#pragma once

#include "digits/data.hpp"
#include "digits/mlp.hpp"
#include "problem.hpp"
#include "tables.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace quality {

inline std::string table_file(const char* name) { return std::string(HYPERTUNE_TABLES) + "/" + name; }

// ---- The error of a small network after two epochs on the handwritten digits. ----

inline double digits_error(const ht::Params& p) {
  static const digits::Digits data = digits::load(HYPERTUNE_DIGITS);
  digits::MlpOptions options;
  options.layers = {64, int(p.get<std::int64_t>("hidden")), 10};
  options.optimizer = p.get<std::string>("optimizer") == "sgd" ? digits::Optimizer::sgd : digits::Optimizer::adam;
  options.learning_rate = p.get<double>("learning_rate");
  if (options.optimizer == digits::Optimizer::sgd) options.momentum = p.get<double>("momentum");
  options.dropout = p.get<double>("dropout");
  options.batch = int(p.get<std::int64_t>("batch"));
  options.seed = 1;
  digits::Mlp network(options);
  for (int epoch = 0; epoch < 2; ++epoch) network.train_epoch(data.train.images, data.train.labels);
  return 1 - network.accuracy(data.validation.images, data.validation.labels);
}

inline Problem digits_network() {
  using K = Parameter::Kind;
  return {"digits network",
          0,
          {{.name = "hidden", .kind = K::integer, .low = 8, .high = 64},
           {.name = "optimizer", .kind = K::choice, .options = {"sgd", "adam"}},
           {.name = "learning_rate", .kind = K::log_real, .low = 1e-5, .high = 1},
           {.name = "momentum", .low = 0, .high = 0.99, .parent = "optimizer", .value = "sgd"},
           {.name = "dropout", .low = 0, .high = 0.8},
           {.name = "batch", .kind = K::integer, .low = 4, .high = 256}},
          digits_error};
}

// ---- The log loss of a network on the breast cancer table, validated on a third of it after six epochs. ----

inline double cancer_network_loss(const ht::Params& p) {
  static const tables::Table table = tables::load(table_file("breast-cancer.csv"));
  const std::string scaling = p.get<std::string>("scaling");
  Eigen::MatrixXd x = table.x;
  if (scaling == "log") x = (x.array() + 1e-3).log().matrix();
  x = scaling == "range" ? ((x.rowwise() - x.colwise().minCoeff()).array().rowwise() /
                            (x.colwise().maxCoeff() - x.colwise().minCoeff()).array())
                               .matrix()
                               .eval()
                         : tables::standardised(x);
  const auto set = [&](bool inside) {
    digits::ImageSet s;
    const auto rows = tables::rows_of(x.rows(), 3, 0, inside);
    s.images = x(rows, Eigen::all).transpose().cast<float>();
    for (const Eigen::Index i : rows) s.labels.push_back(table.y(i) > 0.5 ? 1 : 0);
    return s;
  };
  const auto training = set(false), validation = set(true);
  digits::MlpOptions options;
  options.layers = {30};
  const int width = int(p.get<std::int64_t>("width"));
  for (int layer = 0; layer < int(p.get<std::int64_t>("layers")); ++layer)
    options.layers.push_back(std::max(2, int(width * std::pow(p.get<double>("taper"), layer))));
  options.layers.push_back(2);
  options.optimizer = p.get<std::string>("optimizer") == "sgd" ? digits::Optimizer::sgd : digits::Optimizer::adam;
  options.learning_rate = p.get<double>("learning_rate");
  if (options.optimizer == digits::Optimizer::sgd) options.momentum = p.get<double>("momentum");
  options.dropout = p.get<double>("dropout");
  options.weight_decay = p.get<double>("weight_decay");
  options.batch = int(p.get<std::int64_t>("batch"));
  options.seed = 3;
  digits::Mlp network(options);
  for (int epoch = 0; epoch < 6; ++epoch) network.train_epoch(training.images, training.labels);
  const double loss = network.loss(validation.images, validation.labels);
  return std::isfinite(loss) ? std::min(loss, 20.0) : 20.0;
}

inline Problem cancer_network() {
  using K = Parameter::Kind;
  return {"cancer network",
          0,
          {{.name = "scaling", .kind = K::choice, .options = {"standard", "range", "log"}},
           {.name = "layers", .kind = K::integer, .low = 1, .high = 3},
           {.name = "width", .kind = K::integer, .low = 2, .high = 32},
           {.name = "taper", .low = 0.25, .high = 1},
           {.name = "optimizer", .kind = K::choice, .options = {"sgd", "adam"}},
           {.name = "learning_rate", .kind = K::log_real, .low = 1e-5, .high = 1},
           {.name = "momentum", .low = 0, .high = 0.99, .parent = "optimizer", .value = "sgd"},
           {.name = "weight_decay", .kind = K::log_real, .low = 1e-6, .high = 10},
           {.name = "dropout", .low = 0, .high = 0.8},
           {.name = "batch", .kind = K::integer, .low = 4, .high = 128}},
          cancer_network_loss};
}

// ---- The log loss of boosted trees on the same table, over three folds. ----

inline Problem cancer_trees() {
  using K = Parameter::Kind;
  return {"cancer boosted trees",
          0,
          {{.name = "trees", .kind = K::integer, .low = 5, .high = 80},
           {.name = "depth", .kind = K::integer, .low = 1, .high = 6},
           {.name = "rate", .kind = K::log_real, .low = 1e-3, .high = 1},
           {.name = "penalty", .kind = K::log_real, .low = 1e-3, .high = 100},
           {.name = "least_weight", .kind = K::log_real, .low = 1e-2, .high = 30},
           {.name = "rows", .low = 0.2, .high = 1},
           {.name = "columns", .low = 0.1, .high = 1}},
          [](const ht::Params& p) {
            static const tables::Table table = tables::load(table_file("breast-cancer.csv"));
            tables::BoostedTrees model;
            model.trees = int(p.get<std::int64_t>("trees"));
            model.depth = int(p.get<std::int64_t>("depth"));
            model.rate = p.get<double>("rate");
            model.penalty = p.get<double>("penalty");
            model.least_weight = p.get<double>("least_weight");
            model.rows = p.get<double>("rows");
            model.columns = p.get<double>("columns");
            return model.error(table, 3);
          }};
}

// ---- The error of kernel ridge regression of a wine's alcohol (in standard deviations), over five folds. ----

inline double wine_ridge_error(const ht::Params& p) {
  static const tables::Table table = [] {
    tables::Table t = tables::load(table_file("wine.csv"), 0);
    t.x = tables::standardised(t.x);
    t.y = tables::standardised(t.y);
    return t;
  }();
  using Kernel = tables::KernelRidge::Kernel;
  tables::KernelRidge model;
  const std::string kernel = p.get<std::string>("kernel");
  model.kernel = kernel == "gauss" ? Kernel::gauss : kernel == "laplace" ? Kernel::laplace : Kernel::polynomial;
  model.penalty = p.get<double>("penalty");
  if (model.kernel == Kernel::polynomial) {
    model.degree = int(p.get<std::int64_t>("degree"));
    model.offset = p.get<double>("offset");
  } else {
    model.length = p.get<double>(model.kernel == Kernel::gauss ? "gauss_length" : "laplace_length");
  }
  tables::Table scaled = table;
  static constexpr const char* groups[] = {"acids", "phenols", "looks"};
  for (Eigen::Index c = 0; c < scaled.x.cols(); ++c)
    scaled.x.col(c) *= p.get<double>(groups[c < 4 ? 0 : c < 8 ? 1 : 2]);
  return model.error(scaled, 5);
}

inline Problem wine_ridge() {
  using K = Parameter::Kind;
  return {
      "wine kernel ridge",
      0,
      {{.name = "kernel", .kind = K::choice, .options = {"gauss", "laplace", "polynomial"}},
       {.name = "penalty", .kind = K::log_real, .low = 1e-6, .high = 1e3},
       {.name = "acids", .kind = K::log_real, .low = 0.05, .high = 20},
       {.name = "phenols", .kind = K::log_real, .low = 0.05, .high = 20},
       {.name = "looks", .kind = K::log_real, .low = 0.05, .high = 20},
       {.name = "gauss_length", .kind = K::log_real, .low = 0.01, .high = 100, .parent = "kernel", .value = "gauss"},
       {.name = "laplace_length",
        .kind = K::log_real,
        .low = 0.01,
        .high = 100,
        .parent = "kernel",
        .value = "laplace"},
       {.name = "degree", .kind = K::integer, .low = 1, .high = 5, .parent = "kernel", .value = "polynomial"},
       {.name = "offset", .kind = K::log_real, .low = 0.01, .high = 100, .parent = "kernel", .value = "polynomial"}},
      wine_ridge_error};
}

}  // namespace quality
