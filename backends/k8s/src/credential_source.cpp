// Part of hypertune::k8s.
#include "credential_source.hpp"

#include "exec_plugin.hpp"
#include "kubeconfig.hpp"

#include <hypertune/detail/run_clock.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace hypertune::inline v0::k8s::detail {

namespace {

/// How often, in seconds, files are read again; a service account's token is valid for ten minutes and more.
constexpr double file_interval = 30;

double wall_seconds() { return hypertune::detail::read_clock(CLOCK_REALTIME); }

std::string without_blanks(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  text.erase(0, std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text;
}

}  // namespace

CredentialSource::CredentialSource(Access access, std::string server_name, bool tls)
    : access_(std::move(access)), server_name_(std::move(server_name)), tls_(tls) {}

CredentialSource::Parts CredentialSource::read(bool refused, std::stop_token stop, double& good_for) {
  Parts parts{.token = access_.token,
              .authority = access_.certificate_authority,
              .certificate = access_.client_certificate,
              .key = access_.client_key};
  const auto from_file = [&](const std::filesystem::path& file, const char* what, std::string& into) {
    if (file.empty()) return;
    into = read_named_file(file, access_.origin, what);
    good_for = std::min(good_for, file_interval);
  };
  from_file(access_.certificate_authority_file, "certificate-authority", parts.authority);
  from_file(access_.client_certificate_file, "client-certificate", parts.certificate);
  from_file(access_.client_key_file, "client-key", parts.key);
  from_file(access_.token_file, "the token", parts.token);
  parts.token = without_blanks(std::move(parts.token));
  if (!access_.token_file.empty() && parts.token.empty())
    fail(Errc::input, "{}: the token's file '{}' is empty", access_.origin, access_.token_file.string());
  if (!access_.plugin) return parts;
  if (refused || wall_seconds() >= plugin_until_) {
    auto credential = run_plugin(access_, std::move(stop));
    const double now = wall_seconds();
    // Renew a little before it expires. A plugin that returns expired credentials is run again, but not continuously.
    plugin_until_ = !credential.expires
                        ? std::numeric_limits<double>::infinity()
                        : std::max(now + 1, *credential.expires - std::min(30.0, (*credential.expires - now) / 5));
    from_plugin_ = {.token = std::move(credential.token),
                    .authority = {},
                    .certificate = std::move(credential.client_certificate),
                    .key = std::move(credential.client_key)};
  }
  good_for = std::min(good_for, std::max(0.5, plugin_until_ - wall_seconds()));
  parts.token = from_plugin_.token;
  parts.certificate = from_plugin_.certificate;
  parts.key = from_plugin_.key;
  return parts;
}

std::shared_ptr<const Credential> CredentialSource::fetch(bool refused, std::stop_token stop) {
  double good_for = std::numeric_limits<double>::infinity();
  Parts parts = read(refused, std::move(stop), good_for);
  check_at_ = hypertune::detail::steady_seconds() + good_for;
  if (current_ && parts == parts_) return current_;
  auto made = std::make_shared<Credential>();
  if (tls_)
    made->tls = current_ && parts.authority == parts_.authority && parts.certificate == parts_.certificate &&
                        parts.key == parts_.key
                    ? current_->tls
                    : make_tls_context(parts.authority, parts.certificate, parts.key, server_name_);
  if (!parts.token.empty()) {
    check_header("the token of " + access_.origin, parts.token);
    made->headers.emplace_back("Authorization", "Bearer " + parts.token);
  }
  made->headers.insert(made->headers.end(), access_.headers.begin(), access_.headers.end());
  made->generation = current_ ? current_->generation + 1 : 1;
  parts_ = std::move(parts);
  return current_ = std::move(made);
}

}  // namespace hypertune::inline v0::k8s::detail
