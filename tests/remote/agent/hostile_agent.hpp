// An agent that misbehaves as soon as it is given a trial: what a broken or taken-over host could send.
#pragma once

#include "host_protocol.hpp"

#include <hypertune/error.hpp>

#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <variant>

namespace hypertune::inline v0::test {

class HostileAgent {
 public:
  /// Until the driver has hung up, or asks for no more. Returns the process's exit code.
  static int main(const std::string& deed) {
    ::alarm(120);
    HostileAgent agent(deed);
    return agent.run();
  }

 private:
  explicit HostileAgent(std::string deed) : deed_(std::move(deed)) {}

  int run() {
    out_ = remote::wire::banner;
    remote::wire::Hello hello;
    utsname system{};
    ::uname(&system);
    hello.machine = system.machine;
    hello.pid = ::getpid();
    hello.host.name = "evil";
    hello.host.total.cpus = 2;
    hello.by_content = true;
    say(hello);
    FrameDecoder decoder(remote::wire::message_types);
    char bytes[65536];
    while (flush()) {
      const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return 0;
      decoder.feed(std::string_view(bytes, static_cast<std::size_t>(n)));
      while (const auto frame = decoder.next()) {
        const auto message = remote::wire::decode(*frame);
        if (const auto* launch = std::get_if<Launch>(&message)) strike(*launch);
        if (const auto* stream = std::get_if<remote::wire::StreamOpen>(&message))
          say(remote::wire::StreamEnd{stream->stream});
        // The answers to what is refused without more ado.
        if (std::holds_alternative<remote::wire::Taken>(message) ||
            std::holds_alternative<remote::wire::Unavailable>(message))
          if (++answers_ == expected_) return 0;
      }
    }
    return 0;
  }

  void strike(const Launch& launch) {
    namespace wire = remote::wire;
    const CheckpointInfo made{
        .trial = launch.trial, .steps = 1, .name = "step-1", .bytes = 4, .digest = "00ff00ff00ff00ff"};
    if (deed_ == "a stream of the driver's") say(wire::StreamOpen{2});
    if (deed_ == "streams without end")
      for (std::uint64_t i = 0; i < 1000; ++i) say(wire::StreamOpen{2 * i + 1});
    if (deed_ == "credit for nothing") say(wire::Credit{std::uint64_t{1} << 40U});
    if (deed_ == "a driver's message") say(wire::Begin{});
    if (deed_ == "a second Hello") say(wire::Hello{});
    if (deed_ == "a report with a checkpoint")
      say(Reported{launch.trial, launch.attempt, report("value", 1), made, key_of(launch).second});
    if (deed_ == "garbage") out_ += std::string(100000, '\x7f');
    if (deed_ == "a frame without end") out_ += std::string("\xff\xff\xff\x7f\x0d", 5);
    if (deed_ == "pieces beyond the window")
      for (std::uint64_t i = 0; i < 64; ++i) say(wire::StreamPiece{1, std::string(wire::piece_size, 'x')});
    if (deed_ == "offers without end")
      for (std::uint64_t i = 0; i < 100000; ++i)
        say(wire::Offer{.transfer = 2 * i + 1, .attempt = launch.attempt, .info = made, .by_content = true});
    if (deed_ == "copies without end")
      for (std::uint64_t i = 0; i < 100000; ++i)
        say(wire::Offer{.transfer = 2 * i + 1, .attempt = launch.attempt, .info = made, .files = {{"weights", 4}}});
    if (deed_ == "names that lead elsewhere") {
      expected_ = 4;
      for (const char* name : {"../../escaped", "/tmp/hypertune-escaped", "manifest.json", "a/../../escaped"}) {
        say(wire::Offer{.transfer = transfer_ += 2, .attempt = launch.attempt, .info = made, .files = {{name, 4}}});
        say(wire::Piece{transfer_, "evil"});
      }
    }
    if (deed_ == "sizes that do not add up") {
      expected_ = 3;
      const auto offer = [&](std::vector<wire::CopyFile> files) {
        say(wire::Offer{
            .transfer = transfer_ += 2, .attempt = launch.attempt, .info = made, .files = std::move(files)});
      };
      offer({{"weights", 5}});
      offer({{"a", std::uint64_t(-1)}, {"b", 5}});
      offer({{"a", 2}, {"a", 2}});
    }
    if (deed_ == "bytes that are not what was offered") {
      expected_ = 1;
      say(wire::Offer{.transfer = 1, .attempt = launch.attempt, .info = made, .files = {{"weights", 4}}});
      say(wire::Piece{1, "evil"});
    }
    if (deed_ == "a name by content that leads elsewhere") {
      expected_ = 1;
      auto info = made;
      info.name = "../../../escaped";
      say(wire::Offer{.transfer = 1, .attempt = launch.attempt, .info = info, .by_content = true});
    }
    if (deed_ == "wishes for what is not its own") {
      expected_ = 3;
      auto info = launch.restore.front();
      info.digest = made.digest;  // a sound checkpoint, called damaged
      say(wire::Want{.transfer = 1, .trial = launch.trial, .info = info});
      info.name = "../" + info.name;
      say(wire::Want{.transfer = 3, .trial = launch.trial, .info = info});
      say(wire::Want{.transfer = 5, .trial = launch.trial + 1, .info = launch.restore.front()});
    }
    if (deed_ == "wishes without end")
      for (std::uint64_t i = 0; i < 100000; ++i)
        say(wire::Want{.transfer = 2 * i + 1, .trial = launch.trial, .info = launch.restore.front()});
  }
  void say(const remote::wire::Message& message) { remote::wire::append(out_, message); }
  bool flush() {
    std::string_view left = out_;
    while (!left.empty()) {
      const ssize_t n = ::write(STDOUT_FILENO, left.data(), left.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return false;
      left.remove_prefix(static_cast<std::size_t>(n));
    }
    out_.clear();
    return true;
  }

  const std::string deed_;
  std::string out_;
  std::uint64_t transfer_ = 1;
  int answers_ = 0, expected_ = 1000;
};

}  // namespace hypertune::inline v0::test
