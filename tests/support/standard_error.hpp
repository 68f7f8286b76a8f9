// What a call writes to the standard error.
#pragma once

#include "support/temporary_directory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

/// All that this process writes there meanwhile. What `run` throws goes on, with the standard error as it was.
template <class F>
std::string said(F&& run) {
  struct Back {
    int before;
    ~Back() {
      std::fflush(stderr);
      ::dup2(before, STDERR_FILENO);
      ::close(before);
    }
  };
  const TemporaryDirectory directory;
  const auto file = directory.path() / "said";
  std::fflush(stderr);
  {
    const Back back{::dup(STDERR_FILENO)};
    const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ::dup2(fd, STDERR_FILENO);
    ::close(fd);
    run();
  }
  std::ifstream in(file);
  return std::string(std::istreambuf_iterator<char>(in), {});
}
