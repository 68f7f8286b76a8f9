// A trainer's state as a file in a checkpoint.
#pragma once

#include "cuda_convnet/trainer.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace convnet {

struct StateHeader {
  char magic[4];
  std::uint32_t parameters;
  std::int64_t updates;
  float scale;  // a power of two
  std::int32_t good;
};

inline std::string encoded(const State& state) {
  const StateHeader header{{'C', 'N', 'N', '1'},
                           static_cast<std::uint32_t>(state.parameters.size()),
                           state.updates,
                           static_cast<float>(state.scale.scale),
                           static_cast<std::int32_t>(state.scale.good)};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  for (const std::vector<float>* values : {&state.parameters, &state.velocity})
    bytes.append(reinterpret_cast<const char*>(values->data()), values->size() * sizeof(float));
  return bytes;
}
/// Decodes the state of a network with `parameters` parameters. If the bytes are not one, throws std::runtime_error
/// that names `where`.
inline State decoded(std::string_view bytes, std::size_t parameters, const std::string& where) {
  StateHeader header{};
  if (bytes.size() >= sizeof header) std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, "CNN1", 4) != 0 || header.parameters != parameters)
    throw std::runtime_error(where + " does not hold a network of these layers");
  const std::size_t size = parameters * sizeof(float);
  if (bytes.size() != sizeof header + 2 * size) throw std::runtime_error(where + " is cut short, or too long");
  State state{std::vector<float>(parameters),
              std::vector<float>(parameters),
              header.updates,
              {header.scale, static_cast<std::uint32_t>(header.good)}};
  std::memcpy(state.parameters.data(), bytes.data() + sizeof header, size);
  std::memcpy(state.velocity.data(), bytes.data() + sizeof header + size, size);
  return state;
}

inline void save(const State& state, const std::filesystem::path& file) {
  std::ofstream out(file, std::ios::binary);
  const std::string bytes = encoded(state);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) throw std::runtime_error("cannot write the network to " + file.string());
}
inline State load(const std::filesystem::path& file, std::size_t parameters) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return decoded(bytes, parameters, file.string());
}

}  // namespace convnet
