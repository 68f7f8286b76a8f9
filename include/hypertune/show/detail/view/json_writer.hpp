// JsonWriter of the page.
#pragma once

#include <hypertune/record/detail/json_writer.hpp>

namespace hypertune::inline v0::view {

using hypertune::detail::is_exact_in_browser;
using hypertune::detail::JsonWriter;

}  // namespace hypertune::inline v0::view
