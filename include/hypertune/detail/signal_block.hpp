// Signals are for the program's own threads: those that the library starts take none.
#pragma once

#include <hypertune/version.hpp>

#include <pthread.h>

#include <csignal>

namespace hypertune::inline v0::detail {

/// While it lives, the calling thread takes no signal; a thread started meanwhile never does, as it inherits the mask.
class SignalBlock {
 public:
  SignalBlock() noexcept {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;
  ~SignalBlock() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace hypertune::inline v0::detail
