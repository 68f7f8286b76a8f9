// <hypertune/space/search_space.hpp> alone is enough to use a space that somebody else has built.
#include <hypertune/space/search_space.hpp>

namespace hypertune_test {

hypertune::Point draw(const hypertune::SearchSpace& space, hypertune::Rng& rng) {
  return space.point(space.params(space.from_unit(space.to_unit(space.sample(rng)), rng)));
}

}  // namespace hypertune_test
