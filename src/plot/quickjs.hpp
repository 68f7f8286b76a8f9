// Includes QuickJS's header as a system header, so that its warnings are ignored.
#pragma once
#pragma GCC system_header

#include "vendor/quickjs/quickjs.h"
