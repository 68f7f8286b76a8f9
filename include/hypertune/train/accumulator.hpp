// Accumulator: metrics summed over all ranks, kept across restarts and resizes.
#pragma once

#include <hypertune/detail/byte_codec.hpp>
#include <hypertune/error.hpp>
#include <hypertune/train/communicator.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// Named sums and weighted means over the data of all ranks, for example of an epoch. Each rank adds its values;
/// reduce() returns the same result on all ranks (after AdaptDL's Accumulator). Reduced values are the same on all
/// ranks and are committed with the model; if a rank is lost, only values that it had not reduced are lost.
///
///     accumulator.add("loss", loss, batch.size());    // a mean of the batch: weighted by its samples
///     accumulator.sum("correct", correct);
///     const auto metrics = accumulator.reduce(communicator);   // at the same place on all ranks
///     ... accumulator.clear();                                 // for the next epoch
///
/// NaN and infinity are not hidden: they propagate to the sums and means that they were added to, on all ranks. A value
/// with the weight 0 is ignored, even NaN, but its name is registered. Sums are in double, rank by rank: bitwise the
/// same on all ranks, and for another number of ranks the same up to rounding.
///
/// Not thread-safe; each rank has its own.
class Accumulator {
 public:
  enum class Kind : std::uint8_t { mean, sum };
  struct Entry {
    Kind kind = {};
    double sum = 0;     ///< of value times weight
    double weight = 0;  ///< of means
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  /// Adds a value with this weight to the mean of that name. Error of kind `usage` if the weight is negative or not
  /// finite, or if the name belongs to a sum.
  void add(std::string_view name, double value, double weight = 1) {
    if (!(weight >= 0) || !std::isfinite(weight)) fail(Errc::usage, "metric {} has the weight {}", name, weight);
    Entry& entry = own(name, Kind::mean);
    if (weight == 0) return;
    entry.sum += value * weight;
    entry.weight += weight;
  }
  /// Adds to the sum of that name. Error of kind `usage` if the name belongs to a mean.
  void sum(std::string_view name, double value) { own(name, Kind::sum).sum += value; }

  /// Adds what all ranks have added since the last reduce(), and returns all metrics since clear(). Ranks may have
  /// different names: the result has all of them, except means without weight, which have no value. All ranks must call
  /// it. After a GroupError nothing has changed. An Error of kind `usage`, on all ranks, if a name is a mean on one
  /// rank and a sum on another.
  std::map<std::string, double, std::less<>> reduce(Communicator communicator) {
    Entries all = reduced_;
    for (const auto& rank : gathered(communicator, encoded(own_))) merge(all, decoded(rank));
    reduced_ = std::move(all);
    own_.clear();
    return values();
  }

  /// The result of the last reduce() or restore().
  std::map<std::string, double, std::less<>> values() const {
    std::map<std::string, double, std::less<>> values;
    for (const auto& [name, entry] : reduced_)
      if (entry.kind == Kind::sum)
        values[name] = entry.sum;
      else if (entry.weight > 0)
        values[name] = entry.sum / entry.weight;
    return values;
  }

  /// Starts over: removes everything.
  void clear() {
    own_.clear();
    reduced_.clear();
  }

  /// The state to be committed, as bytes, the same on all ranks. Error of kind `usage` if this rank has values that are
  /// not reduced yet, as a restore would lose them: call reduce() before a commit.
  std::string state() const {
    if (!own_.empty())
      fail(Errc::usage, "metric {} was added after the last reduce(): reduce() before a commit", own_.begin()->first);
    return encoded(reduced_);
  }
  /// Continues from a state; values that were not reduced are dropped. Error of kind `corrupt`, with nothing changed,
  /// if the bytes do not come from state().
  void restore(std::string_view state) {
    reduced_ = decoded(state);
    own_.clear();
  }

 private:
  Entry& own(std::string_view name, Kind kind) {
    for (const Entries* entries : {&own_, &reduced_})
      if (const auto found = entries->find(name); found != entries->end() && found->second.kind != kind)
        fail(Errc::usage, "metric {} is a sum and a mean", name);
    return own_.try_emplace(std::string(name), Entry{.kind = kind}).first->second;
  }
  static void merge(Entries& into, const Entries& from) {
    for (const auto& [name, entry] : from) {
      const auto [found, fresh] = into.try_emplace(name, Entry{.kind = entry.kind});
      if (found->second.kind != entry.kind)
        fail(Errc::usage, "metric {} is a sum on one rank and a mean on another", name);
      found->second.sum += entry.sum;
      found->second.weight += entry.weight;
    }
  }
  static std::string encoded(const Entries& entries) {
    std::string bytes;
    detail::ByteWriter out(bytes);
    out.put(std::uint64_t{entries.size()});
    for (const auto& [name, entry] : entries) {
      out.put(std::string_view(name));
      out.put(entry.kind == Kind::sum);
      out.put(entry.sum);
      out.put(entry.weight);
    }
    return bytes;
  }
  static Entries decoded(std::string_view bytes) {
    detail::ByteReader in(bytes);
    Entries entries;
    for (std::size_t left = in.count(1 + 1 + 8 + 8); left > 0; --left) {
      std::string name = in.text();
      Entry& entry = entries[std::move(name)];
      entry.kind = in.flag() ? Kind::sum : Kind::mean;
      entry.sum = in.real();
      entry.weight = in.real();
    }
    in.end();
    return entries;
  }
  /// Gathers the texts of all ranks, by rank: first their lengths, then the texts padded to the longest one.
  static std::vector<std::string> gathered(const Communicator& communicator, const std::string& mine) {
    const auto size = static_cast<std::size_t>(communicator.size());
    const std::int64_t length = static_cast<std::int64_t>(mine.size());
    std::vector<std::int64_t> lengths(size);
    communicator.all_gather(std::span<const std::int64_t>(&length, 1), std::span(lengths));
    const auto longest = static_cast<std::size_t>(*std::max_element(lengths.begin(), lengths.end()));
    std::vector<std::uint8_t> padded(mine.begin(), mine.end()), all(longest * size);
    padded.resize(longest);
    communicator.all_gather(std::span<const std::uint8_t>(padded), std::span(all));
    std::vector<std::string> texts;
    for (std::size_t rank = 0; rank < size; ++rank) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rank * longest);
      texts.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(lengths[rank]));
    }
    return texts;
  }

  Entries own_;      ///< since the last reduce()
  Entries reduced_;  ///< over all ranks, up to the last reduce()
};

}  // namespace hypertune::inline v0
