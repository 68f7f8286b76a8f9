#include <hypertune/ssh/impl/connection.hpp>
#include <hypertune/ssh/impl/error.hpp>
#include <hypertune/ssh/impl/options.hpp>
#include <hypertune/ssh/impl/quote.hpp>
