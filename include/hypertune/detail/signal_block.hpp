// SignalBlock: keeps signals away from the library's own threads; they are for the program's threads.
#pragma once

#include <hypertune/version.hpp>

#include <pthread.h>

#include <csignal>

namespace hypertune::inline v0::detail {

/// During its lifetime, the calling thread receives no signals. A thread started meanwhile never does, because it
/// inherits the mask.
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
