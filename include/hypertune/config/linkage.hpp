// HYPERTUNE_YAML_INLINE: how the readers of YAML are linked.
#pragma once

// Like HYPERTUNE_INLINE of the core: header-only by default. A program that links hypertune::yaml_compiled (which sets
// HYPERTUNE_YAML_COMPILED) uses the definitions of impl/ from that library instead.
#ifdef HYPERTUNE_YAML_COMPILED
#define HYPERTUNE_YAML_INLINE
#else
#define HYPERTUNE_YAML_INLINE inline
#endif
