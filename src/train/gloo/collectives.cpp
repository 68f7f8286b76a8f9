#include "collectives.hpp"

#include <hypertune/detail/no_sigpipe.hpp>
#include <hypertune/train/detail/collective_text.hpp>
#include <hypertune/train/detail/reduce.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <variant>

namespace hypertune::inline v0::detail {
namespace {

/// Sizes of the pieces that are sent at a time. For a reduction: large enough that the threads seldom wait for each
/// other (measured: 512 KiB is a third slower on two cores, 8 MiB as fast), with an upper bound for the sum over all
/// ranks, as memory is kept for it. For a chain of ranks less, as the last rank waits for as many pieces as there are
/// ranks.
constexpr std::size_t segment_bytes = std::size_t{2} << 20U, all_segments_bytes = std::size_t{8} << 20U;
constexpr std::size_t chain_bytes = std::size_t{512} << 10U;
/// Up to this size every rank sends its whole buffer to every other: more data in total, but in a single step.
constexpr std::size_t small_bytes = 16 << 10U;
/// Results have a channel of their own: they may overtake data that was sent earlier for later results.
constexpr unsigned results_channel = 1;

/// Elements begin to end of a buffer.
struct Range {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

/// `count` elements divided into `parts` parts of whole blocks of 64, as evenly as possible; the first are the larger.
struct Parts {
  std::size_t count = 0, part = 0;
  Parts(std::size_t elements, std::size_t parts)
      : count(elements), part(((elements + parts - 1) / parts + 63) / 64 * 64) {}
  Range operator[](std::size_t i) const { return {std::min(count, i * part), std::min(count, (i + 1) * part)}; }
  /// Piece number `number` of part i, in pieces of `elements` elements. The same on all ranks.
  Range piece(std::size_t i, std::size_t number, std::size_t elements) const {
    const Range whole = (*this)[i];
    const std::size_t begin = std::min(whole.end, whole.begin + number * elements);
    return {begin, std::min(whole.end, begin + elements)};
  }
};

/// The number of elements that are sent to, and received from, each of the other ranks at a time.
std::size_t piece_of(std::size_t others, std::size_t width) {
  return std::max<std::size_t>(4096, std::min(segment_bytes, all_segments_bytes / others) / width);
}

std::size_t pieces(std::size_t count, std::size_t elements) { return (count + elements - 1) / elements; }

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0 && to != from) std::memmove(to, from, bytes);
}

}  // namespace

void GlooCommunicator::perform(const collective::Operation& operation) {
  check_root(operation, size());
  const NoSigpipe to_a_lost_rank;
  GlooOperation under_way(group_, shape_of(operation));
  std::visit([&](const auto& what) { run(under_way, what); }, operation);
  under_way.done();
}

GlooBuffer& GlooCommunicator::scratch(GlooOperation& operation, std::size_t which, std::size_t bytes) {
  Scratch& wanted = scratch_[which];
  if (wanted.bytes < bytes) {
    wanted.buffer.reset();
    wanted.memory.reset(new std::byte[bytes]);
    wanted.bytes = bytes;
    wanted.buffer = group_.buffer(wanted.memory.get(), bytes);
  }
  operation.use(*wanted.buffer);
  return *wanted.buffer;
}

void GlooCommunicator::run(GlooOperation& operation, const collective::AllReduce& what) {
  const std::size_t bytes = what.count * size_of(what.type);
  if (bytes == 0) return;
  if (bytes <= small_bytes)
    reduce_small(operation, what);
  else if (size() < ring_from_ || (what.reduction == Reduction::mean && what.type != ElementType::float32 &&
                                   what.type != ElementType::float64 && what.type != ElementType::bfloat16))
    reduce_by_parts(operation, what);  // for the other types the sum of a mean might overflow an element
  else
    reduce_by_ring(operation, what);
}

void GlooCommunicator::reduce_small(GlooOperation& operation, const collective::AllReduce& what) {
  const std::size_t bytes = what.count * size_of(what.type);
  GlooBuffer& all = scratch(operation, 0, bytes * index(size()));
  auto* const memory = static_cast<std::byte*>(all.ptr);
  for (int rank = 0; rank < size(); ++rank)
    if (rank != this->rank()) operation.receive(all, rank, index(rank) * bytes, bytes);
  copy(memory + index(rank()) * bytes, what.data, bytes);
  for (int step = 1; step < size(); ++step) operation.send(all, (rank() + step) % size(), index(rank()) * bytes, bytes);
  operation.wait_received(all, size() - 1);
  std::vector<const void*> inputs(index(size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = memory + i * bytes;
  combine(what.type, what.reduction, inputs, std::span<void* const>(&what.data, 1), 0, what.count);
  operation.wait_sent(all, size() - 1);
}

void GlooCommunicator::reduce_by_parts(GlooOperation& operation, const collective::AllReduce& what) {
  const std::size_t width = size_of(what.type), others = index(size() - 1);
  const Parts parts(what.count, index(size()));
  const std::size_t piece = piece_of(others, width);
  const std::size_t rounds = pieces(parts.part, piece);
  GlooBuffer& data = operation.memory(what.data, what.count * width);
  // Two rounds are in progress: while one is reduced, the data of the next arrives. Each has a buffer of its own, so
  // that each can be waited for alone.
  std::vector<GlooBuffer*> in;
  for (std::size_t which = 0; which < std::min<std::size_t>(2, rounds); ++which)
    in.push_back(&scratch(operation, which, others * std::min(piece, parts.part) * width));
  const auto other = [&](std::size_t step) { return (rank() + 1 + static_cast<int>(step)) % size(); };
  int sends = 0, results = 0;

  const auto begin = [&](std::size_t round) {
    const Range mine = parts.piece(index(rank()), round, piece);
    for (std::size_t step = 0; step < others; ++step) {
      if (mine.size() != 0)
        operation.receive(*in[round % 2], other(step), step * mine.size() * width, mine.size() * width);
      const Range theirs = parts.piece(index(other(step)), round, piece);
      if (theirs.size() == 0) continue;
      operation.send(data, other(step), theirs.begin * width, theirs.size() * width);
      // The result arrives in the memory that is sent here; the other rank sends it only after receiving this data.
      operation.receive(data, other(step), theirs.begin * width, theirs.size() * width, results_channel);
      ++sends, ++results;
    }
  };
  std::vector<const void*> inputs(index(size()));
  const auto finish = [&](std::size_t round) {
    const Range mine = parts.piece(index(rank()), round, piece);
    if (mine.size() == 0) return;
    operation.wait_received(*in[round % 2], size() - 1);
    auto* const to = static_cast<std::byte*>(what.data) + mine.begin * width;
    inputs[index(rank())] = to;
    for (std::size_t step = 0; step < others; ++step)
      inputs[index(other(step))] = static_cast<const std::byte*>(in[round % 2]->ptr) + step * mine.size() * width;
    void* const output = to;
    combine(what.type, what.reduction, inputs, std::span<void* const>(&output, 1), 0, mine.size());
    for (std::size_t step = 0; step < others; ++step)
      operation.send(data, other(step), mine.begin * width, mine.size() * width, results_channel), ++sends;
  };
  for (std::size_t round = 0; round < rounds; ++round) {
    begin(round);
    if (round >= 1) finish(round - 1);
  }
  finish(rounds - 1);
  operation.wait_received(data, results);
  operation.wait_sent(data, sends);
}

void GlooCommunicator::reduce_by_ring(GlooOperation& operation, const collective::AllReduce& what) {
  // The parts travel round the ring from right to left: first each is summed up on the way to its rank, then the sums
  // go round. Two pieces are in progress at a time, so a part has at least two.
  const std::size_t width = size_of(what.type), n = index(size()), me = index(rank());
  const std::size_t each = std::max<std::size_t>(2, pieces((what.count + n - 1) / n, segment_bytes / width));
  const Parts all(what.count, n * each);
  const int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size();
  const std::size_t sums = (n - 1) * each, steps = 2 * sums;
  GlooBuffer& data = operation.memory(what.data, what.count * width);
  GlooBuffer& in = scratch(operation, 0, 2 * all.part * width);
  const auto sent = [&](std::size_t step) {
    return all[(step < sums ? (me + 1) * each + step : me * each + step - sums) % (n * each)];
  };
  const auto received = [&](std::size_t step) {
    return all[(step < sums ? (me + 2) * each + step : (me + 1) * each + step - sums) % (n * each)];
  };
  for (std::size_t step = 0; step < steps + 2; ++step) {
    if (step >= 2) {
      const std::size_t before = step - 2;
      if (const Range range = received(before); range.size() != 0) {
        operation.wait_received(before < sums ? in : data);
        if (before < sums) {
          auto* const to = static_cast<std::byte*>(what.data) + range.begin * width;
          combine(what.type, what.reduction, to, to,
                  static_cast<const std::byte*>(in.ptr) + before % 2 * all.part * width, range.size());
          if (what.reduction == Reduction::mean && before >= sums - each) divide(what.type, to, range.size(), size());
        }
      }
      if (sent(before).size() != 0) operation.wait_sent(data);
    }
    if (step >= steps) continue;
    if (const Range range = received(step); range.size() != 0) {
      if (step < sums)
        operation.receive(in, right, step % 2 * all.part * width, range.size() * width);
      else
        operation.receive(data, right, range.begin * width, range.size() * width);
    }
    if (const Range range = sent(step); range.size() != 0)
      operation.send(data, left, range.begin * width, range.size() * width);
  }
}

void GlooCommunicator::run(GlooOperation& operation, const collective::Broadcast& what) {
  const std::size_t bytes = what.count * size_of(what.type);
  if (bytes == 0) return;
  GlooBuffer& data = operation.memory(what.data, bytes);
  const int turned = (rank() - what.root + size()) % size();  // relative to the root, which is 0
  const auto real = [&](int rank) { return (rank + what.root) % size(); };
  if (bytes <= chain_bytes) {
    // A tree: in each step, all ranks that have the data send it on.
    int distance = 1;
    while (distance < size() && turned >= distance) distance *= 2;
    if (turned != 0) {
      operation.receive(data, real(turned - distance / 2), 0, bytes);
      operation.wait_received(data);
    }
    int sends = 0;
    for (; distance < size(); distance *= 2)
      if (turned + distance < size()) operation.send(data, real(turned + distance), 0, bytes), ++sends;
    operation.wait_sent(data, sends);
    return;
  }
  // A chain, piece by piece: no rank sends more than it receives.
  const std::size_t rounds = pieces(bytes, chain_bytes);
  const auto size_at = [&](std::size_t round) { return std::min(chain_bytes, bytes - round * chain_bytes); };
  const bool last = turned + 1 == size();
  if (turned != 0)
    for (std::size_t round = 0; round < rounds; ++round)
      operation.receive(data, real(turned - 1), round * chain_bytes, size_at(round));
  for (std::size_t round = 0; round < rounds; ++round) {
    if (turned != 0) operation.wait_received(data);
    if (!last) operation.send(data, real(turned + 1), round * chain_bytes, size_at(round));
  }
  if (!last) operation.wait_sent(data, static_cast<int>(rounds));
}

void GlooCommunicator::run(GlooOperation& operation, const collective::AllGather& what) {
  const std::size_t bytes = what.count * size_of(what.type);
  if (bytes == 0) return;
  GlooBuffer& all = operation.memory(what.all, bytes * index(size()));
  for (int step = 1; step < size(); ++step) {
    const int from = (rank() - step + size()) % size();
    operation.receive(all, from, index(from) * bytes, bytes);
  }
  copy(static_cast<std::byte*>(what.all) + index(rank()) * bytes, what.mine, bytes);
  for (int step = 1; step < size(); ++step) operation.send(all, (rank() + step) % size(), index(rank()) * bytes, bytes);
  operation.wait_received(all, size() - 1);
  operation.wait_sent(all, size() - 1);
}

void GlooCommunicator::run(GlooOperation& operation, const collective::ReduceScatter& what) {
  const std::size_t width = size_of(what.type), bytes = what.count * width, others = index(size() - 1);
  if (bytes == 0) return;
  const std::size_t piece = piece_of(others, width), rounds = pieces(what.count, piece);
  // Gloo does not write to a buffer that it sends from.
  GlooBuffer& data = operation.memory(const_cast<void*>(what.all), bytes * index(size()));
  std::vector<GlooBuffer*> in;
  for (std::size_t which = 0; which < std::min<std::size_t>(2, rounds); ++which)
    in.push_back(&scratch(operation, which, others * std::min(piece, what.count) * width));
  const auto other = [&](std::size_t step) { return (rank() + 1 + static_cast<int>(step)) % size(); };
  const auto range = [&](std::size_t round) { return Range{round * piece, std::min(what.count, (round + 1) * piece)}; };
  const auto begin = [&](std::size_t round) {
    const Range part = range(round);
    for (std::size_t step = 0; step < others; ++step) {
      operation.receive(*in[round % 2], other(step), step * part.size() * width, part.size() * width);
      operation.send(data, other(step), index(other(step)) * bytes + part.begin * width, part.size() * width);
    }
  };
  std::vector<const void*> inputs(index(size()));
  const auto finish = [&](std::size_t round) {
    const Range part = range(round);
    operation.wait_received(*in[round % 2], size() - 1);
    inputs[index(rank())] = static_cast<const std::byte*>(what.all) + index(rank()) * bytes + part.begin * width;
    for (std::size_t step = 0; step < others; ++step)
      inputs[index(other(step))] = static_cast<const std::byte*>(in[round % 2]->ptr) + step * part.size() * width;
    void* const output = static_cast<std::byte*>(what.mine) + part.begin * width;
    combine(what.type, what.reduction, inputs, std::span<void* const>(&output, 1), 0, part.size());
  };
  for (std::size_t round = 0; round < rounds; ++round) {
    begin(round);
    if (round >= 1) finish(round - 1);
  }
  finish(rounds - 1);
  operation.wait_sent(data, static_cast<int>(others * rounds));
}

void GlooCommunicator::run(GlooOperation& operation, const collective::Barrier&) {
  GlooBuffer& nothing = operation.memory(nullptr, 0);
  for (int distance = 1; distance < size(); distance *= 2) {
    operation.receive(nothing, (rank() + size() - distance) % size(), 0, 0);
    operation.send(nothing, (rank() + distance) % size(), 0, 0);
    operation.wait_received(nothing);
    operation.wait_sent(nothing);
  }
}

}  // namespace hypertune::inline v0::detail
