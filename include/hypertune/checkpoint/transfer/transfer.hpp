// Transfer of checkpoints between nodes: all headers. Not part of <hypertune/hypertune.hpp>; link hypertune::transfer.
#pragma once

#include <hypertune/checkpoint/transfer/endpoint.hpp>
#include <hypertune/checkpoint/transfer/fetch.hpp>
#include <hypertune/checkpoint/transfer/server.hpp>
#include <hypertune/checkpoint/transfer/token_bucket.hpp>
#include <hypertune/net/secret.hpp>
#include <hypertune/net/tls_identity.hpp>
