// What a request to the dashboard's server asks for: its target, and the filter in it.
#include <hypertune/error.hpp>
#include <hypertune/show/detail/view/filter.hpp>
#include <hypertune/show/detail/view/query.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace hypertune;

namespace {

const view::ExperimentView& experiment() {
  static const view::ExperimentView made = [] {
    view::ExperimentView fresh{std::filesystem::path()};
    std::int64_t sequence = 0;
    fresh.add({++sequence, 1, record::ExperimentStarted{"f", {maximize("accuracy")}, "", "", "", "", 1, 1}});
    for (TrialId id = 0; id < 3; ++id) {
      fresh.add({++sequence, 2,
                 record::TrialCreated{
                     id, {}, {{"lr", 0.1}, {"kind", std::string("a")}, {"n", std::int64_t{3}}, {"on", true}}}});
      fresh.add({++sequence, 3, record::TrialReported{id, 0, 0, {{"accuracy", 0.5}}}});
    }
    fresh.refresh();
    return fresh;
  }();
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto chosen = [](std::string_view filter) {
    try {
      const view::Filter made(experiment(), filter);
      for (std::size_t i = 0; i < experiment().size(); ++i) static_cast<void>(made.matches(i));
    } catch (const Error& error) {
      if (error.code() != Errc::input) std::abort();
    }
  };
  chosen(text);
  try {
    const view::Query query(text);
    chosen(query.text("filter"));
    static_cast<void>(query.whole("limit", 1, 0, 500));
    static_cast<void>(query.real("from"));
  } catch (const Error& error) {
    if (error.code() != Errc::input) std::abort();
  }
  return 0;
}
