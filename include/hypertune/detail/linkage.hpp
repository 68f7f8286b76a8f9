// How the parts that no template argument reaches are compiled and linked.
#pragma once

// By default hypertune is headers alone. A file that includes them should not pay for what it does not use: a compiler
// instantiates whatever the bodies of inline functions mention, called or not, and does so for a class template's
// members only where they are called. So classes with much in them are templates of a parameter that means nothing,
//
//     template <class Lazy> class BasicTuner;    using Tuner = BasicTuner<void>;
//
// which halves the time that an #include takes, and changes nothing else.
//
// A program that links hypertune::compiled (which sets HYPERTUNE_COMPILED) finds what stands in the folders impl/, each
// included at the end of the header that declares it, in that library instead, and compiles its own files in less than
// half the time. There these templates are instantiated once; what is no template says HYPERTUNE_INLINE.
#ifdef HYPERTUNE_COMPILED
#define HYPERTUNE_INLINE
#else
#define HYPERTUNE_INLINE inline
#endif
