// Part of hypertune::k8s.
#include "engine.hpp"

#include <hypertune/k8s/client.hpp>

namespace hypertune::inline v0::k8s {

Client::Client(Access access, ClientOptions options)
    : state_(std::make_shared<State>(std::move(access), std::move(options))) {}

const std::string& Client::name_space() const { return state_->access().name_space; }
const std::string& Client::server() const { return state_->access().server; }
const std::string& Client::origin() const { return state_->access().origin; }

Answer Client::call(const Request& request, std::stop_token stop) { return state_->wait(state_->call(request), stop); }

}  // namespace hypertune::inline v0::k8s
