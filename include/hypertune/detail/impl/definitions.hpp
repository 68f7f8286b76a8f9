// The name that says that a program has hypertune's definitions.
#pragma once

#include <hypertune/detail/definitions.hpp>

const char include_hypertune_src_hpp_in_one_file_or_link_hypertune_hypertune = 0;
