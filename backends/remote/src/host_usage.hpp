// HostUsage: the resources of this host in use, and polling for termination notices.
#pragma once

#include "host_protocol.hpp"

#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/process/subprocess.hpp>

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace hypertune::inline v0::remote::detail {

/// The standard output of a shell command. nullopt: it failed, printed more than 64 KiB or did not end within
/// `seconds`. Processes that it leaves behind are not waited for.
inline std::optional<std::string> output_of(const std::string& command, double seconds) {
  try {
    auto collected = process::collect({"sh", "-c", command},
                                      {.spawn = {.death_signal = SIGKILL}, .deadline = seconds, .max_output = 65536});
    if (collected.late || collected.code() != 0) return std::nullopt;
    return std::move(collected.out);
  } catch (const Error&) { return std::nullopt; }
}

struct HttpAnswer {
  std::string status;  // three digits
  std::string body;    // cut after 1 KiB
};

/// Blocks for a few seconds at most, apart from the resolution of the name. nullopt: no answer.
inline std::optional<HttpAnswer> http_ask(const std::string& method, const std::string& authority,
                                          const std::string& path, const std::string& header) {
  const auto colon = authority.rfind(':');
  const std::string host = authority.substr(0, colon);
  const std::string port = colon == std::string::npos ? "80" : authority.substr(colon + 1);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  const hypertune::detail::Descriptor socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit{.tv_sec = 2, .tv_usec = 0};
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 ||
      ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0 ||
      ::connect(socket.get(), found->ai_addr, found->ai_addrlen) != 0)
    return std::nullopt;
  const std::string request =
      fmt::format("{} {} HTTP/1.0\r\nHost: {}\r\nUser-Agent: hypertune\r\nConnection: close\r\n{}{}\r\n", method, path,
                  authority, header, method == "GET" ? "" : "Content-Length: 0\r\n");
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()))
    return std::nullopt;
  std::string answer;
  std::array<char, 1024> buffer;
  const double until = hypertune::detail::steady_seconds() + 5;
  while (answer.size() < 8192 && hypertune::detail::steady_seconds() < until) {
    const ssize_t n = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (n <= 0) break;
    answer.append(buffer.data(), static_cast<std::size_t>(n));
  }
  if (!answer.starts_with("HTTP/1.") || answer.size() < 12) return std::nullopt;
  const auto body = answer.find("\r\n\r\n");
  return HttpAnswer{answer.substr(9, 3), body == std::string::npos ? std::string() : answer.substr(body + 4, 1024)};
}

/// The body of http://host[:port]/path if the status is 200. For status 401, first requests a token as EC2's metadata
/// service requires (IMDSv2).
inline std::optional<std::string> http_get(const std::string& url) {
  std::string_view rest = url;
  if (!rest.starts_with("http://")) return std::nullopt;
  rest.remove_prefix(7);
  const auto slash = rest.find('/');
  const std::string authority(rest.substr(0, slash));
  const std::string path = slash == std::string_view::npos ? "/" : std::string(rest.substr(slash));
  auto answer = http_ask("GET", authority, path, "");
  if (answer && answer->status == "401") {
    const auto token = http_ask("PUT", authority, "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds: 60\r\n");
    if (!token || token->status != "200" || token->body.find_first_of("\r\n") != std::string::npos) return std::nullopt;
    answer = http_ask("GET", authority, path, "X-aws-ec2-metadata-token: " + token->body + "\r\n");
  }
  if (!answer || answer->status != "200") return std::nullopt;
  return std::move(answer->body);
}

/// The first line of a notice.
inline std::string first_line(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  return std::string(text.substr(0, std::min<std::size_t>(text.find_first_of("\r\n"), 200)));
}

/// Reads /proc, and asks nvidia-smi if there is a GPU. The use of the processors is measured since the last call.
class HostUsage {
 public:
  wire::Usage look() {
    wire::Usage usage;
    std::ifstream stat("/proc/stat");
    std::string word;
    double total = 0, idle = 0, value = 0;
    stat >> word;
    for (int i = 0; i < 8 && stat >> value; ++i) {
      total += value;
      if (i == 3 || i == 4) idle += value;
    }
    const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
    const double busy = total - idle;
    const double cores = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
    if (total > total_ && total_ > 0 && ticks > 0) usage.cpu = cores * (busy - busy_) / (total - total_);
    total_ = total;
    busy_ = busy;
    std::ifstream memory("/proc/meminfo");
    std::uint64_t available = 0, kib = 0;
    for (std::string line; std::getline(memory, line);) {
      std::istringstream in(line);
      in >> word >> kib;
      if (word == "MemTotal:") usage.memory_total = kib * 1024;
      if (word == "MemAvailable:") available = kib * 1024;
    }
    usage.memory = usage.memory_total - std::min(available, usage.memory_total);
    if (::access("/dev/nvidiactl", F_OK) == 0) look_at_gpus(usage);
    return usage;
  }

 private:
  static void look_at_gpus(wire::Usage& usage) {
    const auto text = output_of("nvidia-smi --query-gpu=utilization.gpu,memory.used --format=csv,noheader,nounits", 5);
    std::istringstream lines(text.value_or(""));
    for (std::string line; std::getline(lines, line);) {
      double percent = 0;
      unsigned long long mib = 0;
      if (std::sscanf(line.c_str(), "%lf , %llu", &percent, &mib) != 2) continue;
      usage.gpus.push_back(percent / 100);
      usage.gpu_memory.push_back(mib << 20U);
    }
  }

  double total_ = 0, busy_ = 0;
};

}  // namespace hypertune::inline v0::remote::detail
