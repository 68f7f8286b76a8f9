// HYPERTUNE_INLINE: how code that does not depend on template arguments is linked.
#pragma once

// Headers declare, and define templates and functions of a line or two. All other definitions are in the folders impl/,
// which <hypertune/src.hpp> includes: a program has them once, by the library hypertune::hypertune or by one file that
// includes <hypertune/src.hpp>. HYPERTUNE_INLINE marks them.
#define HYPERTUNE_INLINE
