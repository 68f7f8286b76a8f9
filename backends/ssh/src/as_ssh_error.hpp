// Runs `f` and converts its HostErrors into SshErrors.
#pragma once

#include <hypertune/remote/host_error.hpp>
#include <hypertune/ssh/error.hpp>

#include <string>

namespace hypertune::inline v0::ssh::detail {

template <class F>
auto as_ssh_error(const std::string& host, const F& f) {
  try {
    return f();
  } catch (const remote::HostError& error) { throw ssh_error(host, error); }
}

}  // namespace hypertune::inline v0::ssh::detail
