// The forms in which people list hosts.
#pragma once

#include <hypertune/hosts/host_spec.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::remote {

using hypertune::HostSpec;
using HostList = std::vector<HostSpec>;

/// Reads one host a line: `name [slots=N] [cpus=X] [gpus=N] [memory=64GiB] [labels=a,zone:b] [custom.NAME=X]`; `#`
/// begins a comment. Errors are of kind `input` and start with `where` and the line's number: an unknown key, a value
/// that is none, a name twice.
HostList parse_host_lines(std::string_view text, const std::string& where);

/// What a host command prints: lines as above, or a JSON array of names and objects with the same keys.
HostList parse_hosts(std::string_view text, const std::string& where);

/// Reads such a file. Error of kind `input` also if it cannot be read.
HostList read_host_file(const std::filesystem::path& file);

/// Names from Slurm's form: "node[01-03,7],login" is node01 node02 node03 node7 login. Error of kind `input` if it is
/// malformed or means more than 100,000 names.
std::vector<std::string> expand_node_list(std::string_view list);

/// The hosts of the Slurm allocation that this program runs in (SLURM_JOB_NODELIST), with the cpus and gpus that the
/// allocation has on each. Error of kind `usage` outside of one.
HostList slurm_hosts();

/// Ends with an Error of kind `input` if a host is listed twice, has no name, or one that ssh would take for an option.
void validate_hosts(const HostList& hosts, const std::string& where);

}  // namespace hypertune::inline v0::remote
