// Definitions of the display on the terminal. Without them a program prints its notices alone.
#pragma once

#include <hypertune/detail/impl/display_part.hpp>
#include <hypertune/show/detail/impl/terminal_display.hpp>
