// The definitions of <hypertune/config/…>, for programs that are built without CMake: one .cpp file includes this.
#pragma once

#include <hypertune/config/impl/algorithms.hpp>
#include <hypertune/config/impl/executor_keys.hpp>
#include <hypertune/config/impl/given_file.hpp>
#include <hypertune/config/impl/old_words.hpp>
#include <hypertune/config/impl/option_forms.hpp>
#include <hypertune/config/impl/pod_capacity.hpp>
#include <hypertune/config/impl/pod_check.hpp>
#include <hypertune/config/impl/sweep_keys.hpp>
