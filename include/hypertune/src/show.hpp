// Definitions: show.
#pragma once

#include <hypertune/show/impl/terminal_display.hpp>
