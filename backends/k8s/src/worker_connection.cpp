// WorkerConnection: a worker's connection, on the driver's side.
#include "worker_connection.hpp"

#include <sys/socket.h>

#include <array>
#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

// Assigns a duplicate of the descriptor, because Asio's socket closes what it was given.
void assign(LocalSocket& socket, const hypertune::detail::Descriptor& descriptor) {
  ErrorCode error;
  socket.assign(asio::local::stream_protocol(), ::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0), error);
}

void explain(int err, std::string why) {
  why += '\n';
  ::send(err, why.data(), why.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

void give_up(StreamEnds ends, const std::string& why) { explain(ends.err.get(), why); }

WorkerConnection::WorkerConnection(std::shared_ptr<WorkerChannel> channel, std::function<void(WorkerConnection&)> ended)
    : channel_(std::move(channel)),
      ended_(std::move(ended)),
      stream_(channel_->stream().get_executor()),
      err_(channel_->stream().get_executor()) {}

void WorkerConnection::start(double ping, double silence) {
  channel_->begin(ping, silence);
  // A driver that has stopped reading must not delay the end.
  channel_->on_over([this] {
    ErrorCode ignored;
    stream_.cancel(ignored);
    err_.cancel(ignored);
  });
  hypertune::detail::spawn(channel_->stream().get_executor(), listen(shared_from_this()),
                           [self = shared_from_this()](const std::string& why) {
                             self->channel_->cut(why);
                             self->finish();
                           });
}

void WorkerConnection::carry(StreamEnds ends) {
  if (channel_->closing()) return give_up(std::move(ends), channel_->why());
  carries_ = true;
  assign(stream_, ends.stream);
  assign(err_, ends.err);
  hypertune::detail::spawn(channel_->stream().get_executor(), speak(shared_from_this()),
                           [self = shared_from_this()](const std::string& why) { self->channel_->close(why); });
}

asio::awaitable<void> WorkerConnection::listen(std::shared_ptr<WorkerConnection> self) {
  WorkerChannel::Received said(Part::begin, {});
  for (;;) {
    const bool more = co_await self->channel_->receive(said);
    if (!more) break;
    co_await self->take(said);
  }
  self->finish();
}

asio::awaitable<void> WorkerConnection::take(WorkerChannel::Received said) {
  if (!carries_ || (said.part != Part::output && said.part != Part::errors)) {
    channel_->cut("the worker sends what is none of the protocol's messages");
    co_return;
  }
  if (said.bytes.empty()) co_return;
  const bool output = said.part == Part::output;
  LocalSocket& to = output ? stream_ : err_;
  const bool written = co_await write_all(to, said.bytes);
  if (output && !written) channel_->close("the driver is done with it");
}

asio::awaitable<void> WorkerConnection::speak(std::shared_ptr<WorkerConnection> self) {
  std::array<char, 1> begin{};
  const bool begun = co_await self->channel_->send(Part::begin, begin.data(), begin.size());
  bool moved = false;
  if (begun) co_await pump(self->channel_, self->stream_, Part::input, &moved);
  self->channel_->close("the driver is done with it");
}

void WorkerConnection::finish() {
  ended_(*this);  // before the driver sees the end of the stream and perhaps opens another one
  if (carries_) explain(err_.native_handle(), channel_->why());
  ErrorCode ignored;
  stream_.close(ignored);
  err_.close(ignored);
}

}  // namespace hypertune::inline v0::k8s
