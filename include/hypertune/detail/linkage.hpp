// How the parts that no template argument reaches are compiled and linked.
#pragma once

// By default hypertune is headers alone: the folders impl/ hold definitions that are longer than a declaration's line
// or two, and the header that declares them includes them at its end.
//
// A program that links hypertune::compiled (which sets HYPERTUNE_COMPILED) finds them in that library instead, and
// compiles its own files in a fraction of the time. They say HYPERTUNE_INLINE, which is `inline` in the first case
// only.
#ifdef HYPERTUNE_COMPILED
#define HYPERTUNE_INLINE
#else
#define HYPERTUNE_INLINE inline
#endif
