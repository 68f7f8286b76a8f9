// HYPERTUNE_CLUSTER_INLINE: how the parts of the launcher are linked.
#pragma once

// As HYPERTUNE_INLINE of the core: headers alone by default; a program that links hypertune::cluster (which
// sets HYPERTUNE_CLUSTER_COMPILED) finds the definitions, which stand below impl/, in that library instead.
#ifdef HYPERTUNE_CLUSTER_COMPILED
#define HYPERTUNE_CLUSTER_INLINE
#else
#define HYPERTUNE_CLUSTER_INLINE inline
#endif
