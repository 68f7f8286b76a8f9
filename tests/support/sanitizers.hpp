// Which sanitizers this program is built with.
#pragma once

// g++ says it by these names, clang by features.
#if defined(__SANITIZE_ADDRESS__)
#define HYPERTUNE_TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HYPERTUNE_TEST_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define HYPERTUNE_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HYPERTUNE_TEST_TSAN 1
#endif
#endif

namespace hypertune_test {

#ifdef HYPERTUNE_TEST_ASAN
inline constexpr bool address_sanitizer = true;
#else
inline constexpr bool address_sanitizer = false;
#endif
#ifdef HYPERTUNE_TEST_TSAN
inline constexpr bool thread_sanitizer = true;
#else
inline constexpr bool thread_sanitizer = false;
#endif

}  // namespace hypertune_test
