// HYPERTUNE_YAML_INLINE: how the readers of YAML are linked.
#pragma once

// Like HYPERTUNE_INLINE of the core: the definitions are in hypertune::yaml, or in the file of the program that
// includes <hypertune/config/src.hpp>.
#define HYPERTUNE_YAML_INLINE
