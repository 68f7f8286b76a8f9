// make_provider().
#include <hypertune/cluster/providers.hpp>

namespace hypertune::inline v0::cluster {

AnyProvider make_provider(const ClusterConfig& config, const std::filesystem::path& state) {
  const auto& type = config.provider.type;
  if (type == "local") return LocalProvider(config, state);
  if (type == "command") return CommandProvider(config, state);
  if (type == "aws") return AwsProvider(config, state);
  if (type == "kubernetes")
    fail(Errc::usage,
         "{}:{}: the provider kubernetes is part of hypertune::cluster (provider_of()), where that is built with "
         "OpenSSL and zstd (libssl-dev, libzstd-dev)",
         config.file.string(), config.provider.line);
  fail(Errc::input,
       "{}:{}: the provider '{}' is known from Ray but not built in: write a program for it (type: command), or, where "
       "its machines exist already, name them (type: local)",
       config.file.string(), config.provider.line, type);
}

}  // namespace hypertune::inline v0::cluster
