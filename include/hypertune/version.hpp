// The version of hypertune. CMakeLists.txt reads it from here.
#pragma once

#define HYPERTUNE_VERSION_MAJOR 0
#define HYPERTUNE_VERSION_MINOR 1
#define HYPERTUNE_VERSION_PATCH 0

/// One number to compare: `#if HYPERTUNE_VERSION >= 200` is 0.2.0 or later.
#define HYPERTUNE_VERSION (HYPERTUNE_VERSION_MAJOR * 10000 + HYPERTUNE_VERSION_MINOR * 100 + HYPERTUNE_VERSION_PATCH)
