#include <hypertune/ssh/impl/remote.hpp>
#include <hypertune/ssh/impl/runtime.hpp>
