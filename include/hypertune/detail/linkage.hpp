// HYPERTUNE_INLINE: how the parts that no template argument reaches are linked.
#pragma once

// By default hypertune is headers alone, and these parts are inline. A program that links hypertune::compiled (which
// sets HYPERTUNE_COMPILED) finds them in that library instead, and compiles its own files in less than half the time.
// Such a part stands in a folder impl/, included at the end of the header that declares it.
#ifdef HYPERTUNE_COMPILED
#define HYPERTUNE_INLINE
#else
#define HYPERTUNE_INLINE inline
#endif
