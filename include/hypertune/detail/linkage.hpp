// How code that does not depend on template arguments is compiled and linked.
#pragma once

// By default hypertune is header-only: the folders impl/ contain definitions that are longer than a line or two, and
// the header that declares them includes them at its end.
//
// A program that links hypertune::compiled (which sets HYPERTUNE_COMPILED) uses the definitions in that library
// instead, and compiles its own files in a fraction of the time. The definitions are marked HYPERTUNE_INLINE, which is
// `inline` only in the first case.
#ifdef HYPERTUNE_COMPILED
#define HYPERTUNE_INLINE
#else
#define HYPERTUNE_INLINE inline
#endif
