// HYPERTUNE_SSH_INLINE: how the parts of this backend are linked.
#pragma once

// As HYPERTUNE_INLINE of the core: headers alone by default; a program that links hypertune::ssh (which sets
// HYPERTUNE_SSH_COMPILED) finds the definitions, which stand below impl/, in that library instead.
#ifdef HYPERTUNE_SSH_COMPILED
#define HYPERTUNE_SSH_INLINE
#else
#define HYPERTUNE_SSH_INLINE inline
#endif
