// The arithmetic of the network. Each struct does the work of one index; a loop on the CPU, or a kernel's grid on the
// GPU, runs over the indices. `T`: float, or a 16-bit type that converts explicitly from and to float (Half, CUDA's
// __half); sums are in float.
//
// Images are [channel][image][y][x]. A convolution is then one matrix product: weights [filters][channels * k * k]
// times Im2Col's columns [channels * k * k][images * y * x]. A dense layer is a convolution whose window is the whole
// image.
#pragma once

#include <hypertune/train/kernels.hpp>  // HYPERTUNE_HD

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace convnet::kernels {

/// Counts and places of elements. GPUs divide numbers of 64 bits several times more slowly.
using Index = std::uint32_t;

/// The geometry of a convolution: `channels` of `images` of height x width, and a square window that moves by one, with
/// `padding` zeros around the image.
struct Window {
  Index channels = 1, images = 1, height = 1, width = 1, side = 3, padding = 1;
  HYPERTUNE_HD Index out_height() const { return height + 2 * padding + 1 - side; }
  HYPERTUNE_HD Index out_width() const { return width + 2 * padding + 1 - side; }
  HYPERTUNE_HD Index rows() const { return channels * side * side; }
  HYPERTUNE_HD Index columns() const { return images * out_height() * out_width(); }
  HYPERTUNE_HD Index pixels() const { return channels * images * height * width; }
  /// Whether an Index counts the elements of the columns.
  bool fits() const {
    const auto places = static_cast<double>(height + 2 * padding) * static_cast<double>(width + 2 * padding);
    return static_cast<double>(rows()) * static_cast<double>(images) * places < 0x1p32;
  }
};

/// Index: a place of the window in each channel, channels * columns().
template <class T>
struct Im2Col {
  Window window;
  const T* image;
  T* columns;
  HYPERTUNE_HD void operator()(std::size_t index) const {
    const auto i = static_cast<Index>(index);
    const Index x = i % window.out_width(), y = i / window.out_width() % window.out_height();
    const Index column = i % window.columns(), c = i / window.columns();
    const Index n = column / (window.out_width() * window.out_height());
    const T* plane = image + (c * window.images + n) * window.height * window.width;
    T* to = columns + c * window.side * window.side * window.columns() + column;
    for (Index dy = 0; dy < window.side; ++dy)
      for (Index dx = 0; dx < window.side; ++dx, to += window.columns()) {
        const Index px = x + dx, py = y + dy;  // in the padded image
        const bool inside = px >= window.padding && py >= window.padding && px < window.width + window.padding &&
                            py < window.height + window.padding;
        *to = inside ? plane[(py - window.padding) * window.width + px - window.padding] : T(0.0F);
      }
  }
};

/// The gradient of the image from that of its columns. Index: the pixels. Each pixel gathers its own sum, so that the
/// order of additions is fixed.
template <class T>
struct Col2Im {
  Window window;
  const T* columns;
  T* image;
  HYPERTUNE_HD void operator()(std::size_t index) const {
    const auto i = static_cast<Index>(index);
    const Index x = i % window.width, y = i / window.width % window.height;
    const Index n = i / (window.width * window.height) % window.images;
    const Index c = i / (window.width * window.height * window.images);
    const Index px = x + window.padding, py = y + window.padding;  // in the padded image
    const Index width = window.out_width(), height = window.out_height();
    float sum = 0;
    for (Index dy = py < height ? 0 : py - height + 1; dy < window.side && dy <= py; ++dy)
      for (Index dx = px < width ? 0 : px - width + 1; dx < window.side && dx <= px; ++dx) {
        const Index row = (c * window.side + dy) * window.side + dx;
        sum += static_cast<float>(columns[((row * window.images + n) * height + py - dy) * width + px - dx]);
      }
    image[i] = T(sum);
  }
};

/// Adds a bias to each row and, if `relu`, takes the positive part. Index: the elements.
template <class T>
struct BiasRelu {
  T* values;
  const float* bias;
  Index columns;
  bool relu;
  HYPERTUNE_HD void operator()(std::size_t index) const {
    const auto i = static_cast<Index>(index);
    const float value = static_cast<float>(values[i]) + bias[i / columns];
    values[i] = T(relu && !(value > 0) ? 0.0F : value);
  }
};
/// The gradient before the ReLU, in place. Index: the elements.
template <class T>
struct ReluBack {
  const T* values;  ///< after the ReLU
  T* gradient;
  HYPERTUNE_HD void operator()(std::size_t i) const {
    if (!(static_cast<float>(values[i]) > 0)) gradient[i] = T(0.0F);
  }
};
/// The gradient of the biases is the sum of each row. First step: partial sums of elements that are `parts` apart, so
/// that neighbouring threads read neighbouring elements. Index: the sums, rows * parts.
template <class T>
struct RowPartSums {
  const T* values;
  Index columns, parts;
  float* sums;
  HYPERTUNE_HD void operator()(std::size_t index) const {
    const auto i = static_cast<Index>(index);
    const T* row = values + i / parts * columns;
    float sum = 0;
    for (Index at = i % parts; at < columns; at += parts) sum += static_cast<float>(row[at]);
    sums[i] = sum;
  }
};
/// Second step: the sum of the parts. Index: the rows.
struct RowSums {
  const float* parts;
  std::size_t count;  ///< number of parts in a row
  float* sums;
  HYPERTUNE_HD void operator()(std::size_t row) const {
    float sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += parts[row * count + i];
    sums[row] = sum;
  }
};

/// The maximum of each side x side block; the image's sides are multiples of `side`. Index: the output's elements.
template <class T>
struct MaxPool {
  Index height, width, side;  ///< of the input
  const T* in;
  T* out;
  std::uint8_t* chosen;  ///< index of the maximum within the block
  HYPERTUNE_HD void operator()(std::size_t i) const {
    const T* corner = in + first(static_cast<Index>(i), height, width, side);
    Index best = 0;
    for (Index k = 1; k < side * side; ++k)
      if (static_cast<float>(corner[k / side * width + k % side]) >
          static_cast<float>(corner[best / side * width + best % side]))
        best = k;
    out[i] = corner[best / side * width + best % side];
    chosen[i] = static_cast<std::uint8_t>(best);
  }
  HYPERTUNE_HD static Index first(Index i, Index height, Index width, Index side) {
    const Index out_width = width / side, out_height = height / side;
    const Index x = i % out_width, y = i / out_width % out_height, plane = i / (out_width * out_height);
    return (plane * height + y * side) * width + x * side;
  }
};
/// Index: the output's elements. Writes the whole gradient of the input.
template <class T>
struct MaxPoolBack {
  Index height, width, side;
  const T* out_gradient;
  const std::uint8_t* chosen;
  T* in_gradient;
  HYPERTUNE_HD void operator()(std::size_t i) const {
    T* corner = in_gradient + MaxPool<T>::first(static_cast<Index>(i), height, width, side);
    for (Index k = 0; k < side * side; ++k)
      corner[k / side * width + k % side] = k == chosen[i] ? out_gradient[i] : T(0.0F);
  }
};

/// Softmax and cross-entropy of `classes` rows of logits. Index: the images. Replaces the logits by the gradient of
/// `scale` times the mean loss; `scale` is the loss scale, 1 for none.
template <class T>
struct SoftmaxCrossEntropy {
  std::size_t classes, images;
  const std::int32_t* labels;
  float scale;
  T* logits;    ///< input; output: the gradient
  float* loss;  ///< of each image
  std::int32_t* predicted;
  HYPERTUNE_HD void operator()(std::size_t n) const {
    std::size_t best = 0;
    for (std::size_t c = 1; c < classes; ++c)
      if (at(c, n) > at(best, n)) best = c;
    const float most = at(best, n);
    float sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(at(c, n) - most);
    const auto label = static_cast<std::size_t>(labels[n]);
    loss[n] = std::log(sum) + most - at(label, n);
    predicted[n] = static_cast<std::int32_t>(best);
    const float weight = scale / static_cast<float>(images);
    for (std::size_t c = 0; c < classes; ++c)
      logits[c * images + n] = T((std::exp(at(c, n) - most) / sum - (c == label ? 1.0F : 0.0F)) * weight);
  }
  HYPERTUNE_HD float at(std::size_t c, std::size_t n) const { return static_cast<float>(logits[c * images + n]); }
};

/// SGD with momentum and decoupled weight decay. Index: the parameters.
struct MomentumSgd {
  float* parameters;
  float* velocity;
  const float* gradient;
  float rate, momentum, decay;
  HYPERTUNE_HD void operator()(std::size_t i) const {
    velocity[i] = momentum * velocity[i] + gradient[i];
    parameters[i] -= rate * (velocity[i] + decay * parameters[i]);
  }
};

/// Divides the gradient by a loss scale, and sets *infinite if an element is not finite. Index: the parameters.
struct Unscale {
  float* gradient;
  float factor;  ///< 1 / scale
  std::int32_t* infinite;
  HYPERTUNE_HD void operator()(std::size_t i) const {
    gradient[i] *= factor;
    if (!(gradient[i] - gradient[i] == 0)) *infinite = 1;  // all threads that write it write the same value
  }
};

/// Partial sums of squares, for a global norm (the square root of their sum). Index: the parts.
struct SquareSums {
  const float* values;
  std::size_t count, parts;
  float* sums;
  HYPERTUNE_HD void operator()(std::size_t part) const {
    float sum = 0;
    for (std::size_t i = part; i < count; i += parts) sum += values[i] * values[i];  // neighbours read neighbours
    sums[part] = sum;
  }
};
/// Index: the values.
struct Multiply {
  float* values;
  float factor;
  HYPERTUNE_HD void operator()(std::size_t i) const { values[i] *= factor; }
};
/// Index: the values.
template <class From, class To>
struct Convert {
  const From* from;
  To* to;
  HYPERTUNE_HD void operator()(std::size_t i) const { to[i] = To(static_cast<float>(from[i])); }
};

}  // namespace convnet::kernels
