// Reads the end of a container's log.
#include "pod_log.hpp"

#include <hypertune/remote/detail/printed.hpp>

#include <algorithm>
#include <utility>

namespace hypertune::inline v0::k8s {

std::string end_of_text(std::string_view text) {
  constexpr std::size_t most = 800;
  std::string all;
  while (!text.empty()) {
    const auto start = text.find_last_of('\n') + 1;  // 0: the first line
    const auto line = remote::detail::last_line(text.substr(start));
    if (all.size() + 3 + line.size() > most) break;
    if (!line.empty()) all = all.empty() ? line : line + " | " + all;
    text = text.substr(0, start == 0 ? 0 : start - 1);
  }
  return all;
}

std::string end_of_log(Client client, const std::string& pod, const std::string& container,
                       const std::stop_token& stop) {
  try {
    const auto answer =
        client.call({.path = api_path({"api", "v1", "namespaces", client.name_space(), "pods", pod, "log"}),
                     .query = {{"container", container}, {"tailLines", "20"}, {"limitBytes", "10000"}},
                     .deadline = 5},
                    stop);
    return end_of_text(answer.body);
  } catch (const Error&) {  // the log only supplements the message
    return {};
  }
}

}  // namespace hypertune::inline v0::k8s
