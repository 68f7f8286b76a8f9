// HYPERTUNE_YAML_INLINE: how the readers of YAML are linked.
#pragma once

// As HYPERTUNE_INLINE of the core: headers alone by default; a program that links hypertune::yaml_compiled (which sets
// HYPERTUNE_YAML_COMPILED) finds the definitions that stand below impl/ in that library instead.
#ifdef HYPERTUNE_YAML_COMPILED
#define HYPERTUNE_YAML_INLINE
#else
#define HYPERTUNE_YAML_INLINE inline
#endif
