// Definitions of the display on the terminal. Without them a program prints its notices alone.
#pragma once

#include <hypertune/detail/parts.hpp>
#include <hypertune/show/detail/impl/terminal_display.hpp>

const char include_hypertune_src_display_hpp_or_link_hypertune_hypertune = 0;
