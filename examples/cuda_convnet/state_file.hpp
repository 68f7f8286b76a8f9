// A trainer's state as a file of a checkpoint.
#pragma once

#include "cuda_convnet/trainer.hpp"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

namespace convnet {

struct StateHeader {
  char magic[4];
  std::uint32_t parameters;
  std::int64_t updates;
  float scale;
  std::int32_t good;
};

inline void save(const State& state, const std::filesystem::path& file) {
  std::ofstream out(file, std::ios::binary);
  const StateHeader header{{'C', 'N', 'N', '1'},
                           static_cast<std::uint32_t>(state.parameters.size()),
                           state.updates,
                           state.scale.scale,
                           state.scale.good};
  out.write(reinterpret_cast<const char*>(&header), sizeof header);
  for (const std::vector<float>* values : {&state.parameters, &state.velocity})
    out.write(reinterpret_cast<const char*>(values->data()),
              static_cast<std::streamsize>(values->size() * sizeof(float)));
  out.close();
  if (!out) throw std::runtime_error("cannot write the network to " + file.string());
}

/// For a network of so many parameters.
inline State load(const std::filesystem::path& file, std::size_t parameters) {
  std::ifstream in(file, std::ios::binary);
  StateHeader header{};
  in.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!in || std::memcmp(header.magic, "CNN1", 4) != 0 || header.parameters != parameters)
    throw std::runtime_error(file.string() + " does not hold a network of these layers");
  State state{
      std::vector<float>(parameters), std::vector<float>(parameters), header.updates, {header.scale, header.good}};
  for (std::vector<float>* values : {&state.parameters, &state.velocity})
    in.read(reinterpret_cast<char*>(values->data()), static_cast<std::streamsize>(values->size() * sizeof(float)));
  if (!in) throw std::runtime_error(file.string() + " is cut short");
  return state;
}

}  // namespace convnet
