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

/// The geometry of a convolution: `channels` of `images` of height x width, and a square window that moves by one, with
/// `padding` zeros around the image.
struct Window {
  std::size_t channels = 1, images = 1, height = 1, width = 1, side = 3, padding = 1;
  HYPERTUNE_HD std::size_t out_height() const { return height + 2 * padding + 1 - side; }
  HYPERTUNE_HD std::size_t out_width() const { return width + 2 * padding + 1 - side; }
  HYPERTUNE_HD std::size_t rows() const { return channels * side * side; }
  HYPERTUNE_HD std::size_t columns() const { return images * out_height() * out_width(); }
  HYPERTUNE_HD std::size_t pixels() const { return channels * images * height * width; }
};

/// Index: the elements of the columns, rows() * columns().
template <class T>
struct Im2Col {
  Window window;
  const T* image;
  T* columns;
  HYPERTUNE_HD void operator()(std::size_t i) const {
    const std::size_t x = i % window.out_width(), y = i / window.out_width() % window.out_height();
    const std::size_t n = i / (window.out_width() * window.out_height()) % window.images, row = i / window.columns();
    const std::size_t dx = row % window.side, dy = row / window.side % window.side,
                      c = row / (window.side * window.side);
    const std::size_t px = x + dx, py = y + dy;  // in the padded image
    const bool inside = px >= window.padding && py >= window.padding && px < window.width + window.padding &&
                        py < window.height + window.padding;
    columns[i] = inside ? image[((c * window.images + n) * window.height + py - window.padding) * window.width + px -
                                window.padding]
                        : T(0.0F);
  }
};

/// The gradient of the image from that of its columns. Index: the pixels. Each pixel gathers its own sum, so that the
/// order of additions is fixed.
template <class T>
struct Col2Im {
  Window window;
  const T* columns;
  T* image;
  HYPERTUNE_HD void operator()(std::size_t i) const {
    const std::size_t x = i % window.width, y = i / window.width % window.height;
    const std::size_t n = i / (window.width * window.height) % window.images;
    const std::size_t c = i / (window.width * window.height * window.images);
    float sum = 0;
    for (std::size_t dy = 0; dy < window.side; ++dy)
      for (std::size_t dx = 0; dx < window.side; ++dx) {
        const std::size_t px = x + window.padding, py = y + window.padding;
        if (px < dx || py < dy || px - dx >= window.out_width() || py - dy >= window.out_height()) continue;
        const std::size_t row = (c * window.side + dy) * window.side + dx;
        sum += static_cast<float>(
            columns[((row * window.images + n) * window.out_height() + py - dy) * window.out_width() + px - dx]);
      }
    image[i] = T(sum);
  }
};

/// Adds a bias to each row and, if `relu`, takes the positive part. Index: the elements.
template <class T>
struct BiasRelu {
  T* values;
  const float* bias;
  std::size_t columns;
  bool relu;
  HYPERTUNE_HD void operator()(std::size_t i) const {
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
  std::size_t columns, parts;
  float* sums;
  HYPERTUNE_HD void operator()(std::size_t i) const {
    const T* row = values + i / parts * columns;
    float sum = 0;
    for (std::size_t at = i % parts; at < columns; at += parts) sum += static_cast<float>(row[at]);
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
  std::size_t height, width, side;  ///< of the input
  const T* in;
  T* out;
  std::uint8_t* chosen;  ///< index of the maximum within the block
  HYPERTUNE_HD void operator()(std::size_t i) const {
    const T* corner = in + first(i, height, width, side);
    std::size_t best = 0;
    for (std::size_t k = 1; k < side * side; ++k)
      if (static_cast<float>(corner[k / side * width + k % side]) >
          static_cast<float>(corner[best / side * width + best % side]))
        best = k;
    out[i] = corner[best / side * width + best % side];
    chosen[i] = static_cast<std::uint8_t>(best);
  }
  HYPERTUNE_HD static std::size_t first(std::size_t i, std::size_t height, std::size_t width, std::size_t side) {
    const std::size_t out_width = width / side, out_height = height / side;
    const std::size_t x = i % out_width, y = i / out_width % out_height, plane = i / (out_width * out_height);
    return (plane * height + y * side) * width + x * side;
  }
};
/// Index: the output's elements. Writes the whole gradient of the input.
template <class T>
struct MaxPoolBack {
  std::size_t height, width, side;
  const T* out_gradient;
  const std::uint8_t* chosen;
  T* in_gradient;
  HYPERTUNE_HD void operator()(std::size_t i) const {
    T* corner = in_gradient + MaxPool<T>::first(i, height, width, side);
    for (std::size_t k = 0; k < side * side; ++k)
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
