// Any bytes of an API server and of a kubeconfig are events, ends of commands, lines and contexts, or an Error; and how
// they are cut changes nothing.
#include "channel_frames.hpp"
#include "http.hpp"
#include "kubeconfig.hpp"
#include "log_machine.hpp"
#include "watch_machine.hpp"

#include <hypertune/k8s/api_error.hpp>

#include <boost/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace hypertune;
using namespace hypertune::k8s;
using namespace hypertune::k8s::detail;

namespace {

void watch(std::string_view bytes, std::size_t step, std::string& told) {
  WatchMachine machine({.path = "/x", .max_event = 2000}, [&](const WatchEvent& event) {
    told += std::to_string(static_cast<int>(event.kind));
    if (event.object != nullptr) told += boost::json::serialize(*event.object);
  });
  machine.next(0.5);
  machine.listed(
      R"({"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a","uid":"u","resourceVersion":"1"}}]})");
  machine.next(0.5);
  machine.streaming();
  for (std::size_t at = 0; at < bytes.size(); at += step)
    if (!machine.feed(bytes.substr(at, step))) break;
  machine.stream_over(1);
  if (machine.waiting() > 2000) std::abort();
  while (machine.next(0.5).kind == WatchMachine::Action::Kind::pause) {}
  machine.listed(bytes);
}

void log(std::string_view bytes, std::size_t step, std::string& told) {
  LogMachine machine({.pod = "p", .max_line = 1024},
                     [&](const LogEvent& event) { (told += event.time) += event.text; });
  machine.begin(true);
  for (std::size_t at = 0; at < bytes.size(); at += step) machine.feed(bytes.substr(at, step));
  machine.over(true);
}

void channels(std::string_view bytes, std::size_t step) {
  ChannelReader reader;
  std::string status;
  for (std::size_t at = 0; at < bytes.size(); at += step)
    if (const auto piece = reader.take(bytes.substr(at, step), at % 5 == 0)) status += piece->bytes;
  static_cast<void>(read_command_end(status));
  static_cast<void>(read_command_end(bytes));
}

void answer(std::string_view bytes, std::size_t step) {
  ResponseReader reader(1000);
  try {
    for (std::size_t at = 0; at < bytes.size() && !reader.done(); at += step) reader.feed(bytes.substr(at, step));
    reader.end();
  } catch (const Error& error) {
    if (error.code() != Errc::protocol) std::abort();
  }
  if (reader.body().size() > 1000) std::abort();
}

void kubeconfig(std::string_view bytes) {
  try {
    Kubeconfig config;
    config.add(load_yaml_text(bytes, "config"));
    static_cast<void>(config.access(""));
  } catch (const Error& error) {
    if (error.code() != Errc::input && error.code() != Errc::usage) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t step = 1 + data[0] % 16;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string whole, cut;
  watch(bytes, std::max<std::size_t>(bytes.size(), 1), whole);
  watch(bytes, step, cut);
  log(bytes, std::max<std::size_t>(bytes.size(), 1), whole);
  log(bytes, step, cut);
  if (whole != cut) std::abort();
  channels(bytes, step);
  answer(bytes, step);
  kubeconfig(bytes);
  return 0;
}
