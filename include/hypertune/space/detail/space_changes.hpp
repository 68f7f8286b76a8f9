// What differs between two texts of SearchSpace::describe().
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::detail {

/// One line for each parameter and each constraint that is in one of the texts only, or not the same in both: "x was
/// {uniform: [0, 1]} and is {uniform: [0, 2]} now". At most `most` lines; the last one then says how many are left out.
/// Functions of a program are not in the text: only their names can differ. Empty if `before` is (not known).
std::vector<std::string> space_changes(std::string_view before, std::string_view now, std::size_t most = 8);

}  // namespace hypertune::inline v0::detail
