// The tests fork where other threads have been: the children's threads are new ones, which ThreadSanitizer refuses by
// default.
#include "support/sanitizers.hpp"

#ifdef HYPERTUNE_TEST_TSAN
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }
// Gloo's library is not instrumented: that a buffer's end waits for its users, by the count of a shared_ptr, is not
// seen.
extern "C" const char* __tsan_default_suppressions() { return "race:libgloo\n"; }
#endif
