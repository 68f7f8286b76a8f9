// DashboardStart: how a run starts to serve its page, without a dependency on the server.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

namespace hypertune::inline v0 {

/// Called with the folder of an experiment that is about to begin. The returned object serves the experiment's page
/// until it is destroyed, at the run's end. `serve_dashboard()` of <hypertune/show/dashboard.hpp> makes one.
using DashboardStart = std::function<std::shared_ptr<void>(const std::filesystem::path& experiment)>;

}  // namespace hypertune::inline v0
