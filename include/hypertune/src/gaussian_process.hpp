// Definitions: the default searcher, and the Gaussian process that it rests on.
#pragma once

#include <hypertune/search/impl/auto.hpp>
#include <hypertune/search/impl/default_searcher.hpp>
#include <hypertune/search/impl/gaussian_process.hpp>
