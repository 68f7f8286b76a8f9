#include <hypertune/ssh/impl/host_source.hpp>
