// A Rendezvous of processes on one machine: a file for each key.
#pragma once

#include <hypertune/trial/group.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace hypertune_test {

class FileRendezvous final : public hypertune::Rendezvous {
 public:
  explicit FileRendezvous(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
  }
  void set(const std::string& key, const std::string& value) override {
    const auto file = path(key);
    const auto number = std::hash<std::thread::id>()(std::this_thread::get_id());
    const std::filesystem::path written = fmt::format("{}.{}.{}", file.string(), ::getpid(), number);
    std::ofstream(written) << value;
    std::filesystem::rename(written, file);
  }
  std::optional<std::string> wait(const std::string& key, hypertune::Seconds seconds) override {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (;;) {  // a file system wakes nobody
      if (std::ifstream in(path(key)); in) return std::string(std::istreambuf_iterator<char>(in), {});
      if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  std::filesystem::path path(std::string key) const {
    for (char& c : key)
      if (c == '/') c = '_';
    return folder_ / key;
  }
  std::filesystem::path folder_;
};

}  // namespace hypertune_test
