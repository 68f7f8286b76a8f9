#include "protection.hpp"
#include "server.hpp"

#include <hypertune/detail/say.hpp>
#include <hypertune/error.hpp>
#include <hypertune/show/dashboard.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <utility>

namespace hypertune::inline v0 {

namespace {

namespace asio = boost::asio;

// Parses an address, or "localhost".
asio::ip::address address_of(const std::string& text) {
  boost::system::error_code error;
  const auto address = asio::ip::make_address(text == "localhost" ? "127.0.0.1" : text, error);
  if (error)
    fail(Errc::usage, "'{}' is no address to listen on: give this machine's, such as 192.168.1.7, or 0.0.0.0 for all",
         text);
  return address;
}

// The names under which a browser may reach the server.
ServerNames names_of(const asio::ip::address& address) {
  ServerNames names;
  if (address.is_loopback()) {
    names.hosts.emplace_back("[::1]");
    return names;
  }
  names.scheme = "https";
  names.hosts.emplace_back("[::1]");
  if (!address.is_unspecified())
    names.hosts.push_back(address.is_v6() ? "[" + address.to_string() + "]" : address.to_string());
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0 && host.front() != '\0') names.hosts.emplace_back(host.data());
  return names;
}

}  // namespace

class Dashboard::State {
 public:
  explicit State(DashboardServing serving)
      : address(address_of(serving.listen)),
        experiments(serving.folders, serving.expected),
        api(experiments, std::move(serving.cost)) {
    if (!address.is_loopback()) protection.emplace(serving.identity, serving.token);
    server.emplace(api, asio::ip::tcp::endpoint(address, serving.port), names_of(address), dashboard::ServerLimits(),
                   protection ? &protection->gate() : nullptr, protection ? &protection->encryption() : nullptr);
    experiments.follow([this](const std::string& id) { server->notify(id); });
    server->start();
  }
  ~State() {
    experiments.stop();
    server->stop();
  }

  std::string text() const {
    std::string host = address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
    if (address.is_unspecified()) {
      std::array<char, 256> name{};
      if (::gethostname(name.data(), name.size() - 1) == 0) host = name.data();
    }
    return fmt::format("{}://{}:{}/", protection ? "https" : "http", host, server->port());
  }

  asio::ip::address address;
  dashboard::Experiments experiments;
  dashboard::Api api;
  std::optional<dashboard::Protection> protection;
  std::optional<dashboard::Server> server;
};

Dashboard::Dashboard(DashboardServing serving) : state_(std::make_unique<State>(std::move(serving))) {}
Dashboard::~Dashboard() = default;
std::uint16_t Dashboard::port() const { return state_->server->port(); }
std::string Dashboard::address() const { return state_->text(); }
std::string Dashboard::link() const {
  auto text = state_->text();
  if (!state_->protection) return text;
  text.pop_back();
  return text + state_->protection->entry();
}
std::string Dashboard::fingerprint() const { return state_->protection ? state_->protection->fingerprint() : ""; }

DashboardStart serve_dashboard(DashboardServing serving) {
  return [serving = std::move(serving)](const std::filesystem::path& experiment) {
    DashboardServing with = serving;
    with.folders = {experiment};
    with.expected = true;
    auto page = std::make_shared<Dashboard>(std::move(with));
    detail::say(fmt::format("hypertune: the page of this run is {}", page->link()));
    return page;
  };
}

void Dashboard::wait_for_signal() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  struct sigaction hangup{};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) ::sigaddset(&signals, SIGHUP);  // ignored by nohup
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  int signal = 0;
  ::sigwait(&signals, &signal);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace hypertune::inline v0
