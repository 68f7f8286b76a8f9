// The messages between a driver and the agent on a host, for all trials of that host.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/execute/detail/worker_protocol.hpp>
#include <hypertune/execute/executor.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hypertune::inline v0::remote {

/// One stream of bytes in each direction (the standard input and output of the agent):
///
///     agent                                        driver
///     banner, Hello (version, resources)       ->
///                                              <-  Welcome (version, intervals)
///                                              <-  Begin (experiment, incarnation, program)
///                                              <-  Launch, Continue, Pause, Stop
///     Proof                                    ->                (if the driver names a shared folder)
///                                              <-  Share
///     Started, Reported, Paused, Finished, …   ->
///     GroupMessage                             <-> GroupMessage  (between a worker of a group and the driver)
///     LogPiece, Usage, Draining                ->
///     Serving                                  ->                (endpoint from which other hosts can fetch)
///     Offer, Piece…                            ->                (a sealed checkpoint, for the driver to copy)
///                                              <-  Taken         (the driver's copy is sealed, or why not)
///     Want                                     ->                (a trial should continue from this checkpoint)
///                                              <-  Offer, Piece… | Source | Unavailable
///     Fetched | Unavailable                    ->                (whether it has been fetched)
///     StreamOpen, StreamPiece…, StreamEnd      <-> StreamOpen, StreamPiece…, StreamEnd
///     Heartbeat, Credit                        <-> Heartbeat, Credit
///     Refusal                                  ->                (why the agent cannot continue)
///                                              <-  Shutdown
///
/// A stream is one *incarnation* of the host. When it ends, the agent and all its trials end. The driver ignores the
/// rest of a stream that it has given up. Before the agent carries out Begin, it takes a lock that every process of an
/// earlier incarnation shares, so none of those is left.
///
/// Checkpoints above a certain size are not sent in Pieces: an Offer with `by_content` is fetched from its sender, and
/// a Source names the peers to fetch a wanted one from, with the protocol of hypertune::transfer. Its connections are
/// tunnelled through the streams, each of which leads to the CheckpointServer of the other side, so no port is opened
/// for them.
///
/// Pieces of checkpoints and of streams are sent only when nothing else waits, and at most `window` bytes of them are
/// in transit, so reports never wait behind more than that. Doubles are transferred bit for bit.
namespace wire {

inline constexpr std::uint32_t version = 10;

/// Precedes the agent's first frame, to separate it from the output of a login shell.
inline constexpr std::string_view banner = "\nhypertune-agent\n";
inline constexpr std::size_t max_preamble = std::size_t{64} << 10U;
inline constexpr std::size_t window = std::size_t{1} << 20U;       ///< bytes of pieces sent but not yet credited
inline constexpr std::size_t piece_size = std::size_t{64} << 10U;  ///< maximum size of a piece
inline constexpr std::size_t max_addresses = 128;                  ///< per host
inline constexpr std::size_t max_streams = 256;                    ///< open at once, per opening side

struct Hello {
  std::uint32_t version = wire::version;
  std::int64_t pid = 0;
  std::string machine = {};  ///< architecture as in uname
  Host host = {};            ///< its own name, resources and addresses; no addresses: too many, or not known
  double clock = 0;          ///< its time, only for a hint about clock skew
  bool by_content = false;   ///< it can serve and fetch checkpoints by content
};
struct Welcome {
  std::uint32_t version = wire::version;
  std::string host_name = {};    ///< the driver's name for the host
  double heartbeat = 0.5;        ///< seconds between heartbeats
  double heartbeat_timeout = 3;  ///< seconds without a message until the driver gives the host up
};
struct Begin {
  std::string experiment = {};                  ///< name of the experiment's folder on the host
  std::uint64_t incarnation = 0;                ///< increases with every connection of the experiment
  Seconds hang_timeout = 0;                     ///< as in ExecutorStart
  std::uint64_t log_limit = default_log_limit;  ///< as in ExecutorStart
  std::string program = {};                     ///< description from which the agent makes its Program
  std::string notice_command = {};              ///< polled for a termination notice: exit code 0
  std::string notice_url = {};                  ///< polled by HTTP for a termination notice: status 200
  double notice_interval = 5;
  bool by_content = false;          ///< checkpoints larger than inline_limit are transferred by content
  std::uint64_t inline_limit = 0;   ///< bytes
  std::string token = {};           ///< secret that authenticates peers of the experiment
  std::uint64_t rate_limit = 0;     ///< bytes per second that it may send; 0: unlimited
  bool direct = false;              ///< other hosts may fetch from it
  std::string direct_network = {};  ///< network of the address for that, as "10.1.0.0/16"; empty: the known address
  std::uint64_t direct_port = 0;    ///< 0: any
  std::string shared = {};          ///< folder on the host that should be shared with the driver; empty: none
  std::string shared_proof = {};    ///< a file in it that the agent must read to prove that it is shared
  std::string shared_area = {};     ///< the folder in it that the agent may write to
};
struct Heartbeat {
  std::uint64_t number = 0;
};
/// The receiver has consumed this many bytes of pieces.
struct Credit {
  std::uint64_t bytes = 0;
};
struct LogPiece {
  TrialId trial = 0;
  Attempt attempt = 0;
  std::string text = {};
  int member = 0;
};
/// The host's resources in use, by all of its processes.
struct Usage {
  double cpu = 0;  ///< cores
  std::uint64_t memory = 0, memory_total = 0;
  std::vector<double> gpus = {};  ///< fraction of each device's time
  std::vector<std::uint64_t> gpu_memory = {};
};
/// The host will go away in `seconds`; 0: immediately, or not known.
struct Draining {
  std::string why = {};
  double seconds = 0;
};
struct CopyFile {
  std::string name;
  std::uint64_t size = 0;
  friend bool operator==(const CopyFile&, const CopyFile&) = default;
};
/// A sealed checkpoint. Its content follows in Pieces, file after file; or can be fetched (`by_content`); or is in the
/// shared folder, where the driver takes it (`shared`). `attempt`: the one that made it, if an agent offers.
struct Offer {
  std::uint64_t transfer = 0;
  Attempt attempt = 0;
  CheckpointInfo info = {};
  std::string parent = {};
  std::vector<CopyFile> files = {};
  bool by_content = false, shared = false;
};
struct Piece {
  std::uint64_t transfer = 0;
  std::string bytes = {};
};
/// Answer to an Offer: a copy is sealed; or `error` says why not.
struct Taken {
  std::uint64_t transfer = 0;
  std::string error = {};
};
/// A request for a checkpoint that `trial` should continue from.
struct Want {
  std::uint64_t transfer = 0;
  TrialId trial = 0;
  CheckpointInfo info = {};
  bool from_driver = false;               ///< other hosts could not provide it
  std::vector<std::string> without = {};  ///< endpoints of a Source that did not have it
};
/// A wanted or offered checkpoint cannot be provided completely. `lost`: nor at any later time.
struct Unavailable {
  std::uint64_t transfer = 0;
  std::string why = {};
  bool lost = false;
};
struct Refusal {
  std::string why = {};
  bool permanent = true;  ///< another attempt would end the same way
};
/// The agent must end. `clean`: its files on the host are no longer needed.
struct Shutdown {
  bool clean = true;
};
/// The endpoint from which other hosts can fetch checkpoints, as the text of an Endpoint.
struct Serving {
  std::string endpoint = {};
};
/// Where a wanted checkpoint can be fetched: from one of these hosts or, if there are none, from the driver.
struct Source {
  std::uint64_t transfer = 0;
  std::string content_id = {};          ///< identifies its content; empty if the driver does not know it
  std::vector<std::string> peers = {};  ///< endpoints
};
/// A wanted checkpoint was fetched; statistics.
struct Fetched {
  std::uint64_t transfer = 0;
  std::uint64_t moved = 0, reused = 0;    ///< bytes
  bool direct = false;                    ///< fetched from another host
  std::vector<std::string> without = {};  ///< endpoints of its Source that did not have it
};
/// Streams opened by the agent have odd numbers, those opened by the driver even ones.
struct StreamOpen {
  std::uint64_t stream = 0;
};
struct StreamPiece {
  std::uint64_t stream = 0;
  std::string bytes = {};
};
/// No more data is sent or accepted.
struct StreamEnd {
  std::uint64_t stream = 0;
};
/// The text that the agent read in the supposedly shared folder, and the text it wrote; or `error`: why it could not.
struct Proof {
  std::string read = {}, wrote = {}, error = {};
};
/// Whether checkpoints are written to the shared folder.
struct Share {
  bool granted = false;
};

/// A message's position in this list (from 1) is its type on the wire: append only.
using Message = std::variant<Hello, Welcome, Begin, Heartbeat, Credit, Launch, Continue, Pause, Stop, Started, Reported,
                             Paused, Finished, Stopped, Failed, Notice, LogPiece, Usage, Draining, Offer, Piece, Taken,
                             Want, Unavailable, Refusal, Shutdown, Serving, Source, Fetched, StreamOpen, StreamPiece,
                             StreamEnd, Proof, Share, SaveFailed, GroupMessage>;

inline constexpr auto message_types = static_cast<std::uint8_t>(std::variant_size_v<Message>);

}  // namespace wire

}  // namespace hypertune::inline v0::remote
