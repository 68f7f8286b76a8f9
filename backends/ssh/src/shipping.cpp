#include <hypertune/ssh/impl/shipping.hpp>
