// Part of hypertune::cluster.
#include <hypertune/cluster/impl/aws_provider.hpp>
#include <hypertune/cluster/impl/command_provider.hpp>
#include <hypertune/cluster/impl/local_provider.hpp>
#include <hypertune/cluster/impl/provider.hpp>
#include <hypertune/cluster/impl/subprocess.hpp>
