#include "replica.hpp"

#include <hypertune/detail/as_duration.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/net/failed_connections.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <fcntl.h>
#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <utility>

namespace hypertune::inline v0::serving {

namespace asio = boost::asio;
using hypertune::detail::Descriptor;

namespace {

asio::posix::stream_descriptor watched(asio::io_context& io, const Descriptor& descriptor) {
  asio::posix::stream_descriptor stream(io);
  if (descriptor) stream.assign(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 3));
  return stream;
}

}  // namespace

Replica::Replica(asio::io_context& io, ReplicaProcess process, int number, ReplicaEvents events)
    : to_(watched(io, process.to)),
      from_(watched(io, process.from)),
      exited_(watched(io, process.exited)),
      limit_(io),
      end_process_(std::move(process.end)),
      framed_(process.framed),
      number_(number),
      events_(std::move(events)) {}

Replica::~Replica() { end(); }

void Replica::begin(double seconds) {
  limit(seconds, "was not ready");
  read();
  if (exited_.is_open())
    exited_.async_wait(asio::posix::stream_descriptor::wait_read, [self = weak_from_this()](const ErrorCode& error) {
      if (const auto replica = self.lock(); replica && !error) replica->lost({});
    });
}

void Replica::send(const std::vector<Tensor>& inputs, double seconds) {
  ++asked_;
  const Encoded message = encode_inputs(inputs, framed_, framed_ ? 0 : asked_);
  out_.clear();
  if (framed_) {
    const FrameHead head{message.bytes.size(), message.json};
    out_.resize(sizeof head);
    std::memcpy(out_.data(), &head, sizeof head);
  }
  out_ += message.bytes;
  if (!framed_) out_ += '\n';
  state_ = State::busy;
  limit(seconds, "gave no answer");
  writing_ = true;
  asio::async_write(to_, asio::buffer(out_), [self = shared_from_this()](const ErrorCode& error, std::size_t) {
    if (error) return self->lost({});
    self->writing_ = false;
  });
}

void Replica::end() {
  if (state_ != State::ended) close();
}

// Returns how its process ended.
std::string Replica::close() {
  state_ = State::ended;
  ErrorCode ignored;
  for (auto* stream : {&to_, &from_, &exited_}) stream->close(ignored);  // NOLINT(bugprone-unused-return-value)
  limit_.cancel();
  return end_process_();
}

void Replica::lost(const std::string& why) {
  if (state_ == State::ended) return;
  const std::string how = close();
  const auto self = shared_from_this();
  events_.ended(*this, why.empty() ? how : why);
}

void Replica::limit(double seconds, std::string what) {
  limit_.expires_after(hypertune::detail::as_duration(seconds));
  limit_.async_wait([self = weak_from_this(), number = ++limits_, seconds, what = std::move(what)](const ErrorCode&) {
    const auto replica = self.lock();
    if (replica && number == replica->limits_) replica->lost(fmt::format("it {} within {} s", what, seconds));
  });
}

void Replica::read() {
  from_.async_read_some(asio::buffer(piece_), [self = shared_from_this()](const ErrorCode& error, std::size_t bytes) {
    if (self->state_ == State::ended) return;
    if (error) return self->lost({});
    try {
      self->received(bytes);
    } catch (...) { return self->lost(hypertune::detail::text_of_error(std::current_exception())); }
    if (self->state_ != State::ended) self->read();
  });
}

void Replica::received(std::size_t bytes) {
  in_.append(piece_.data(), bytes);
  while (state_ != State::ended && next_message()) {}
  if (in_.size() > largest_frame) lost("it has sent more than a message may have");
}

// Takes one message out of what has come. False: there is none.
bool Replica::next_message() {
  if (framed_) {
    FrameHead head;
    if (in_.size() < sizeof head) return false;
    std::memcpy(&head, in_.data(), sizeof head);
    if (head.size > largest_frame || head.json > head.size) {
      lost("it has sent what is no message");
      return false;
    }
    if (in_.size() - sizeof head < head.size) return false;
    const std::string whole = std::exchange(in_, in_.substr(sizeof head + head.size));
    message(std::string_view(whole).substr(sizeof head, head.size), head.json);
    return true;
  }
  const auto end = in_.find('\n', searched_);
  searched_ = in_.size();
  if (end == std::string::npos) return false;
  const std::string whole = std::exchange(in_, in_.substr(end + 1));
  searched_ = 0;
  const auto line = std::string_view(whole).substr(0, end);
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return true;
  // Libraries print to standard output whatever they like.
  if (!is_message(line, state_ == State::starting)) {
    if (!std::exchange(stray_, true))
      hypertune::detail::say(
          fmt::format("hypertune: replica {} printed '{}', which is no answer: such lines are passed over", number_,
                      line.substr(0, 200)));
    return true;
  }
  message(line, std::nullopt);
  return true;
}

void Replica::message(std::string_view bytes, std::optional<std::size_t> json) {
  if (state_ == State::starting) {
    std::optional<Signature> signature;
    try {
      signature = decode_signature(bytes);
    } catch (const Error& error) { return lost(fmt::format("it could not begin: {}", error.what())); }
    state_ = State::idle;
    ++limits_;
    limit_.cancel();
    return events_.ready(*this, std::move(signature));
  }
  if (state_ != State::busy) return lost("it has sent an answer that nobody asked for");
  if (writing_) return lost("it has answered a request that it has not read");
  state_ = State::idle;
  ++limits_;
  limit_.cancel();
  events_.answered(*this, bytes, json);
}

}  // namespace hypertune::inline v0::serving
