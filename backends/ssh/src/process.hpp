// Processes of this machine, as backends/remote starts them.
#pragma once

#include <hypertune/remote/detail/local_process.hpp>

namespace hypertune::ssh::detail {

using remote::detail::become;
using remote::detail::Descriptor;
using remote::detail::last_line;
using remote::detail::make_pipe;
using remote::detail::NextInput;
using remote::detail::poll_milliseconds;
using remote::detail::ProcessBounds;
using remote::detail::run_process;
using remote::detail::steady_seconds;
using remote::detail::TakeOutput;
using remote::detail::wait_for;

}  // namespace hypertune::ssh::detail
