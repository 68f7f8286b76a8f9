// A message to the user.
#pragma once

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

/// Messages that were left out since the last one that was read.
inline std::atomic<std::uint64_t> unread_messages = 0;

/// Whether a write to the standard error does not wait, or stops waiting within this time. At most PIPE_BUF bytes are
/// meant: a pipe that has room has room for as many.
inline bool can_say(int milliseconds) {
  pollfd waits{::fileno(stderr), POLLOUT, 0};
  return ::poll(&waits, 1, milliseconds) != 0;  // an error is the write's
}

/// Writes `line` to the standard error. It is not an error if nobody can read it (a terminal that was closed). If a reader
/// has stopped (a full pipe, Ctrl-S), messages are left out, so that the caller goes on after 0.2 s, the next ones at
/// once; when it reads on, it is told how many. May be called from any thread.
inline void say(std::string line) {
  line += '\n';
  if (!can_say(unread_messages == 0 ? 200 : 0)) {
    ++unread_messages;
    return;
  }
  if (const auto missed = unread_messages.exchange(0); missed > 0)
    line = "hypertune: messages that nobody read were left out: " + std::to_string(missed) + "\n" + line;
  for (std::string_view rest = line; !rest.empty();) {
    const auto part = rest.substr(0, std::min<std::size_t>(rest.size(), PIPE_BUF));
    if (part.data() != line.data() && !can_say(200)) return;
    std::fwrite(part.data(), 1, part.size(), stderr);
    rest.remove_prefix(part.size());
  }
}

}  // namespace hypertune::inline v0::detail
