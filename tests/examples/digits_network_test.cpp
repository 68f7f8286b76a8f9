// The digits example's own parts: the data, the distortions, the network.
#include "digits/augment.hpp"
#include "digits/data.hpp"
#include "digits/mlp.hpp"
#include "support/test.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace digits;

struct ScratchFile {
  std::filesystem::path path;
  explicit ScratchFile(const std::string& name)
      : path(std::filesystem::temp_directory_path() / (name + "." + std::to_string(::getpid()))) {}
  ~ScratchFile() { std::filesystem::remove(path); }
  void write(const std::string& text) const { std::ofstream(path) << text; }
};

const Digits& real_digits() {
  static const Digits digits = load(HYPERTUNE_DIGITS);
  return digits;
}

/// Sixty images are enough to learn from and fast without optimisation.
ImageSet some_digits(Eigen::Index count = 60) {
  const auto& all = real_digits().train;
  ImageSet few{Eigen::MatrixXf(64, count), {}};
  for (Eigen::Index i = 0; i < count; ++i) {
    const Eigen::Index from = i * all.size() / count;
    few.images.col(i) = all.images.col(from);
    few.labels.push_back(all.labels[static_cast<std::size_t>(from)]);
  }
  return few;
}

}  // namespace

TEST_CASE("the digits are all there, split the same way for ever") {
  const auto& [train, validation] = real_digits();
  CHECK(train.size() == 1442);
  CHECK(validation.size() == 355);
  CHECK(train.labels.size() == 1442);
  CHECK(validation.labels.size() == 355);
  for (const auto* set : {&train, &validation}) {
    CHECK(set->images.minCoeff() == 0.0f);
    CHECK(set->images.maxCoeff() == 1.0f);
    CHECK(std::set<int>(set->labels.begin(), set->labels.end()).size() == 10);
  }
  // Positions of a few images in the split: a change of the split would make results incomparable.
  double checksum = 0;
  for (Eigen::Index i = 0; i < validation.size(); ++i) checksum += validation.images.col(i).sum() * double(i % 7 + 1);
  CHECK(checksum == Approx(27469.5).margin(0.01));
}

TEST_CASE("no image is in both sets") {
  const auto& [train, validation] = real_digits();
  const auto key = [](const ImageSet& set, Eigen::Index i) {
    return std::vector<float>(set.images.col(i).data(), set.images.col(i).data() + 64);
  };
  std::set<std::vector<float>> seen;
  for (Eigen::Index i = 0; i < train.size(); ++i) seen.insert(key(train, i));
  for (Eigen::Index i = 0; i < validation.size(); ++i) CHECK(seen.count(key(validation, i)) == 0);
}

TEST_CASE("what is held out of a set is not in it any more, and has each digit about as often") {
  ImageSet set = real_digits().train;
  const ImageSet whole = set, held = hold_out(set);
  REQUIRE(held.size() == 241);
  REQUIRE(set.size() == 1201);
  const auto rows = [](const ImageSet& of) {
    std::multiset<std::vector<float>> found;
    for (Eigen::Index i = 0; i < of.size(); ++i) {
      std::vector<float> row(of.images.col(i).data(), of.images.col(i).data() + 64);
      row.push_back(static_cast<float>(of.labels[static_cast<std::size_t>(i)]));
      found.insert(std::move(row));
    }
    return found;
  };
  auto both = rows(set);
  both.merge(rows(held));
  CHECK(both == rows(whole));
  for (int digit = 0; digit < 10; ++digit)
    CHECK(std::abs(std::count(held.labels.begin(), held.labels.end(), digit) - 24) <= 1);
}

TEST_CASE("a wrong data file is an error that names its line") {
  const ScratchFile file("hypertune-digits");
  const std::string good = std::string(64, '0') + " 3\n";
  file.write(good + std::string(63, '0') + " 3\n");
  CHECK_THROWS_WITH(load(file.path), ContainsSubstring(":2: a line is 64 pixels"));
  file.write(good + good + std::string(63, '0') + "h 3\n");
  CHECK_THROWS_WITH(load(file.path), ContainsSubstring(":3: a pixel is one of"));
  file.write(std::string(64, '0') + " x\n");
  CHECK_THROWS_WITH(load(file.path), ContainsSubstring(":1: the label"));
  file.write(good);
  CHECK_THROWS_WITH(load(file.path), ContainsSubstring("too few images"));
  CHECK_THROWS_WITH(load("/nowhere/digits.txt"), ContainsSubstring("cannot read the digits"));
}

TEST_CASE("distortions keep the range, repeat by seed, and vanish at strength 0") {
  const auto images = some_digits().images;
  CHECK(augmented(images, 0, 1) == images);
  const auto once = augmented(images, 0.5, 1);
  CHECK(once == augmented(images, 0.5, 1));
  CHECK(once != augmented(images, 0.5, 2));
  CHECK(once.minCoeff() >= 0.0f);
  CHECK(once.maxCoeff() <= 1.0f + 1e-5f);
  // A little distortion is closer to the image than a lot of it.
  CHECK((augmented(images, 0.1, 1) - images).norm() < (augmented(images, 1.0, 1) - images).norm());
}

TEST_CASE("back-propagation gives the gradient of the loss") {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const auto layers = GENERATE(std::vector<int>{5, 3}, std::vector<int>{5, 7, 3}, std::vector<int>{5, 8, 6, 4, 3});
  MlpOptions options;
  options.layers = layers;
  options.seed = 11;
  BasicMlp<double> network(options);
  for (Eigen::Index i = 0; i < network.parameters().size(); ++i) network.parameters()[i] += 0.1 * normal(random);
  Eigen::MatrixXd images(5, 9);
  std::vector<int> labels(9);
  for (Eigen::Index i = 0; i < images.size(); ++i) images.data()[i] = normal(random);
  for (auto& label : labels) label = static_cast<int>(random() % 3);

  const double loss = network.loss_and_gradient(images, labels);
  CHECK(loss == Approx(network.loss(images, labels)));
  const Eigen::VectorXd gradient = network.gradient();
  for (Eigen::Index i = 0; i < gradient.size(); ++i) {
    const double h = 1e-6, value = network.parameters()[i];
    network.parameters()[i] = value + h;
    const double above = network.loss(images, labels);
    network.parameters()[i] = value - h;
    const double below = network.loss(images, labels);
    network.parameters()[i] = value;
    INFO("parameter " << i);
    CHECK(gradient[i] == Approx((above - below) / (2 * h)).margin(1e-7).epsilon(1e-5));
  }
}

TEST_CASE("the gradient of chosen images is that of these images alone") {
  const auto data = some_digits();
  Mlp network({});
  const std::vector<std::uint64_t> chosen = {7, 2, 11};
  Eigen::MatrixXf images(64, 3);
  std::vector<int> labels;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    images.col(static_cast<Eigen::Index>(i)) = data.images.col(static_cast<Eigen::Index>(chosen[i]));
    labels.push_back(data.labels[chosen[i]]);
  }
  const double loss = network.loss_and_gradient(images, labels);
  const Eigen::VectorXf gradient = network.gradient();
  CHECK(network.loss_and_gradient(data.images, data.labels, chosen) == loss);
  CHECK(network.gradient() == gradient);
  CHECK(network.loss_and_gradient(data.images, data.labels, {}) == 0);
  CHECK(network.gradient().isZero());
}

TEST_CASE("both optimisers learn, with and without dropout") {
  const auto data = some_digits();
  MlpOptions options;
  options.layers = {64, 32, 10};
  options.optimizer = GENERATE(Optimizer::sgd, Optimizer::adam);
  options.learning_rate = options.optimizer == Optimizer::sgd ? 0.05 : 0.01;
  options.dropout = GENERATE(0.0, 0.2);
  options.batch = 10;
  Mlp network(options);
  const double before = network.loss(data.images, data.labels);
  for (int epoch = 0; epoch < 30; ++epoch) network.train_epoch(data.images, data.labels);
  CHECK(network.loss(data.images, data.labels) < before / 10);
  CHECK(network.accuracy(data.images, data.labels) > 0.9);
  CHECK(network.epochs() == 30);
}

TEST_CASE("weight decay keeps the weights small") {
  const auto data = some_digits();
  const auto norm = [&](double decay) {
    MlpOptions options;
    options.weight_decay = decay;
    Mlp network(options);
    for (int epoch = 0; epoch < 5; ++epoch) network.train_epoch(data.images, data.labels);
    return network.parameters().norm();
  };
  CHECK(norm(10) < 0.95f * norm(0));
}

TEST_CASE("the same seed trains the same network, another seed another") {
  const auto data = some_digits();
  const auto trained = [&](std::uint64_t seed) {
    MlpOptions options;
    options.dropout = 0.3;
    options.seed = seed;
    Mlp network(options);
    for (int epoch = 0; epoch < 3; ++epoch) network.train_epoch(data.images, data.labels);
    return network.parameters();
  };
  CHECK(trained(1) == trained(1));
  CHECK(trained(1) != trained(2));
}

TEST_CASE("training goes on from a saved network as if it had not stopped") {
  const auto data = some_digits();
  const ScratchFile file("hypertune-network");
  MlpOptions options;
  options.optimizer = GENERATE(Optimizer::sgd, Optimizer::adam);
  options.dropout = 0.2;
  Mlp straight(options), first(options);
  for (int epoch = 0; epoch < 4; ++epoch) straight.train_epoch(data.images, data.labels);
  for (int epoch = 0; epoch < 2; ++epoch) first.train_epoch(data.images, data.labels);
  first.save(file.path);
  Mlp second(options);
  const auto before = second.state();
  second.load(file.path);
  CHECK(second.epochs() == 2);
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(second.state()[i].data() == before[i].data());
  for (int epoch = 0; epoch < 2; ++epoch) second.train_epoch(data.images, data.labels);
  CHECK(second.parameters() == straight.parameters());
}

TEST_CASE("a file that is no network of these layers leaves the network alone") {
  const ScratchFile file("hypertune-network");
  Mlp network(MlpOptions{});
  const auto before = network.parameters();
  file.write("nonsense");
  CHECK_THROWS_WITH(network.load(file.path), ContainsSubstring("does not hold a network of these layers"));
  MlpOptions other;
  other.layers = {64, 20, 10};
  Mlp(other).save(file.path);
  CHECK_THROWS_WITH(network.load(file.path), ContainsSubstring("does not hold a network of these layers"));
  network.save(file.path);
  std::filesystem::resize_file(file.path, std::filesystem::file_size(file.path) - 1);
  CHECK_THROWS_WITH(network.load(file.path), ContainsSubstring("cut short"));
  CHECK(network.parameters() == before);
  CHECK_THROWS_WITH(network.save("/nowhere/network"), ContainsSubstring("cannot write the network"));
}

TEST_CASE("options that make no sense are refused") {
  MlpOptions options;
  options.layers = {64};
  CHECK_THROWS_AS(Mlp(options), std::invalid_argument);
  options.layers = {64, 0, 10};
  CHECK_THROWS_AS(Mlp(options), std::invalid_argument);
  options = {};
  options.batch = 0;
  CHECK_THROWS_AS(Mlp(options), std::invalid_argument);
  options = {};
  options.dropout = 1;
  CHECK_THROWS_AS(Mlp(options), std::invalid_argument);
}
