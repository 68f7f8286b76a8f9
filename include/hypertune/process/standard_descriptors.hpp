// Standard input, output and error of a process that was started without them.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace hypertune::inline v0::process {

/// Opens /dev/null in place of each standard descriptor that is closed. Otherwise the next file or socket would get its
/// number, and what a program or a library writes to standard error would go there.
inline void open_standard_descriptors() noexcept {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor)
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(::open("/dev/null", O_RDWR));  // the lowest free number: those below are open
}

}  // namespace hypertune::inline v0::process
