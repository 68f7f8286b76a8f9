// QuickJS's header, as a system's: its warnings and its style are others'.
#pragma once
#pragma GCC system_header

#include "vendor/quickjs/quickjs.h"
