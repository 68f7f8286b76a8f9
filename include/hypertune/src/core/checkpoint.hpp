// Definitions of the core: checkpoint.
#pragma once

#include <hypertune/checkpoint/impl/local_store.hpp>
