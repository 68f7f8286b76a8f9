// The name that says that a program has this part.
#pragma once

#include <hypertune/detail/parts.hpp>

const char include_hypertune_src_analysis_hpp_or_link_hypertune_hypertune = 0;
