// ServeOptions: how a model is served.
#pragma once

#include <hypertune/option.hpp>
#include <hypertune/trial/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// When waiting requests become a batch.
enum class Batching : std::uint8_t {
  by_deadline,  ///< as late as latency_objective allows for its oldest request; at once without an objective
  fixed_delay,  ///< at once, or `max_delay` after its oldest request
};

/// How requests are put together.
struct BatchOptions {
  Batching batching = Batching::by_deadline;
  int max_batch_size = 32;         ///< rows
  double max_delay = 0;            ///< seconds; of Batching::fixed_delay
  int max_queued_requests = 1000;  ///< more are refused with status 429
  double latency_objective = 0;    ///< seconds from a request to its answer; later ones are refused; 0: none
};

/// How many processes answer. The names are Ray Serve's.
struct ReplicaOptions {
  int min_replicas = 1;
  int max_replicas = 1;
  double target_ongoing_requests = 2;  ///< requests that wait or are answered, for each replica
  double upscale_delay = 3;            ///< seconds for which more replicas must be wanted before one is added
  double downscale_delay = 60;         ///< seconds for which fewer must be wanted before one is ended
  double cpus = 0;                     ///< cores of each, to which it is bound; 0: not bound
  double gpus = 0;                     ///< GPUs of each
  double start_timeout = 300;          ///< seconds until it is ready
  double hang_timeout = 60;            ///< seconds for a batch, after which it is ended and another one started
};

struct ServeOptions {
  std::string listen = "127.0.0.1";  ///< an address. Beyond loopback TLS and a token are required of all clients
  std::uint16_t port = 0;            ///< 0: any free one
  std::string name = {};             ///< of the model; empty: the experiment's
  bool follow = false;               ///< a better checkpoint takes over while the experiment goes on
  BatchOptions batch = {};
  ReplicaOptions replicas = {};
  std::filesystem::path validation = {};  ///< an inference request that each version must answer before it takes over
  double canary_share = 0;  ///< of the requests go to a new version first, for canary_time; 0: it takes over at once
  double canary_time = 60;  ///< seconds
  std::string pin = {};     ///< the version that is served, "TRIAL-STEPS"; empty: the best
  std::filesystem::path identity = {};            ///< a PEM file with certificate and key; empty: a new one
  std::filesystem::path token = {};               ///< a file with the token; empty: a new one is printed
  std::size_t max_body = std::size_t{64} << 20U;  ///< bytes of a request
  int max_connections = 1024;
  double request_timeout = 60;  ///< seconds until a request that waits is refused
  double drain_grace = 30;      ///< seconds for the requests under way after SIGTERM
  /// Called once when requests are accepted, with the address.
  std::function<void(const std::string& address)> ready = {};
};

}  // namespace hypertune::inline v0
