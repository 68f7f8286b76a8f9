// Definitions of the core: space, and what all parts use.
#pragma once

#include <hypertune/detail/impl/error.hpp>
#include <hypertune/detail/impl/format.hpp>
#include <hypertune/detail/impl/option.hpp>
#include <hypertune/detail/impl/random.hpp>
#include <hypertune/space/detail/impl/build.hpp>
#include <hypertune/space/detail/impl/domain_prior.hpp>
#include <hypertune/space/detail/impl/grammar.hpp>
#include <hypertune/space/detail/impl/lattice.hpp>
#include <hypertune/space/detail/impl/model.hpp>
#include <hypertune/space/detail/impl/normal.hpp>
#include <hypertune/space/detail/impl/space_changes.hpp>
#include <hypertune/space/detail/impl/user_prior.hpp>
#include <hypertune/space/detail/search_space.hpp>
#include <hypertune/space/impl/choices.hpp>
#include <hypertune/space/impl/domain.hpp>
#include <hypertune/space/impl/params.hpp>
#include <hypertune/space/impl/space.hpp>
