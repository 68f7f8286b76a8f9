// What the linker says first to a program that has hypertune's declarations alone.
#pragma once

/// Defined where hypertune's definitions are. A program without them lacks some thirty names that do not say what to do,
/// and this one.
extern const char include_hypertune_src_hpp_in_one_file_or_link_hypertune_hypertune;

namespace hypertune::inline v0::detail {
namespace {
// A function, because linkers look through code first.
[[gnu::used]] const char* definitions() { return &include_hypertune_src_hpp_in_one_file_or_link_hypertune_hypertune; }
}  // namespace
}  // namespace hypertune::inline v0::detail
