// Part of hypertune::compiled: see detail/linkage.hpp.
#include <hypertune/tune/impl/control.hpp>
#include <hypertune/tune/impl/resumption.hpp>
#include <hypertune/tune/impl/study.hpp>
#include <hypertune/tune/impl/suggestions.hpp>
#include <hypertune/tune/impl/tune.hpp>
#include <hypertune/tune/impl/tuner.hpp>

namespace hypertune {
template class BasicSuggestions<void>;
template class BasicTuner<void>;
template Options with_recorded<>(Options, const SearchSpace&);
template Options resumed_options<>(const std::filesystem::path&, const SearchSpace&, Options);
template class BasicErasedStudy<void>;
}  // namespace hypertune
