// JobGuard: the shell.
#include "job_guard.hpp"

#include <hypertune/detail/no_sigpipe.hpp>

#include <unistd.h>

#include <exception>

namespace hypertune::inline v0::slurm {
namespace {

// The controller may be away for a while when the driver dies.
constexpr const char* script = R"sh(
trap '' INT TERM HUP
jobs=' '
while read -r what id; do
  case $what in
    +) jobs="$jobs$id " ;;
    -) case $jobs in *" $id "*) jobs="${jobs%%" $id "*} ${jobs#*" $id "}" ;; esac ;;
    end) exit 0 ;;
  esac
done
tries=0
while [ "$jobs" != ' ' ] && ! scancel $jobs && [ "$tries" -lt 12 ]; do
  tries=$((tries + 1))
  sleep 10
done
)sh";

}  // namespace

// Without it jobs end as they do when the driver's machine dies, a little later.
void JobGuard::tell(const std::string& line) {
  const std::lock_guard hold(mutex_);
  try {
    if (shell_.pid() <= 0)
      shell_ = process::Subprocess({"sh", "-c", script, "hypertune-jobs"},
                                   {.in = process::Stream::pipe, .group = process::Group::session});
  } catch (const std::exception&) { return; }
  const hypertune::detail::NoSigpipe no_signal;
  const auto text = line + "\n";
  if (::write(shell_.in.get(), text.data(), text.size()) < 0) return;  // somebody has killed it
}

JobGuard::~JobGuard() {
  if (shell_.pid() <= 0) return;
  tell("end");
  shell_.in = process::Descriptor();
  shell_.end(1);
}

}  // namespace hypertune::inline v0::slurm
