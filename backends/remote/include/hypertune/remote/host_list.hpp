// HostList: parsing the supported formats of host lists.
#pragma once

#include <hypertune/hosts/host_options.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::remote {

using hypertune::HostOptions;
using HostList = std::vector<HostOptions>;

/// Parses one host per line: `name [slots=N] [cpus=X] [gpus=N] [memory=64GiB] [labels=a,zone:b] [custom.NAME=X]`; `#`
/// begins a comment. Errors are of kind `input` and start with `where` and the line number: an unknown key, an invalid
/// value, a duplicate name.
HostList parse_host_lines(std::string_view text, const std::string& where);

/// Parses the output of a host command: lines as above, or a JSON array of names and objects with the same keys.
HostList parse_hosts(std::string_view text, const std::string& where);

/// Parses a file of such lines. Error of kind `input` also if it cannot be read.
HostList read_host_file(const std::filesystem::path& file);

/// Expands Slurm's list format: "node[01-03,7],login" is node01 node02 node03 node7 login. Error of kind `input` if it
/// is malformed or has more than 100,000 names.
std::vector<std::string> expand_node_list(std::string_view list);

/// The hosts of the Slurm allocation of this program (SLURM_JOB_NODELIST), with the allocated cpus and gpus on each.
/// Error of kind `usage` outside an allocation.
HostList slurm_hosts();

/// Throws an Error of kind `input` if a host is listed twice, or has no name or a name that ssh would take for an
/// option.
void validate_hosts(const HostList& hosts, const std::string& where);

}  // namespace hypertune::inline v0::remote
