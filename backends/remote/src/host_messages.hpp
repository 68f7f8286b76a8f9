// What a driver and the agent on a host say to each other, for all trials of that host at once.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/execute/worker_protocol.hpp>

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
///     Proof                                    ->                (where a folder is said to be shared)
///                                              <-  Share
///     Started, Reported, Paused, Finished, …   ->
///     GroupMessage                             <-> GroupMessage  (between a worker of a group and the driver)
///     LogPiece, Usage, Draining                ->
///     Serving                                  ->                (other hosts can fetch checkpoints there)
///     Offer, Piece…                            ->                (a checkpoint was sealed: a copy for the driver)
///                                              <-  Taken         (it is safe, or why not)
///     Want                                     ->                (a trial is to go on from a checkpoint not here)
///                                              <-  Offer, Piece… | Source | Unavailable
///     Fetched | Unavailable                    ->                (it has come from there, or not)
///     StreamOpen, StreamPiece…, StreamEnd      <-> StreamOpen, StreamPiece…, StreamEnd
///     Heartbeat, Credit                        <-> Heartbeat, Credit
///     Refusal                                  ->                (the agent cannot go on, and why)
///                                              <-  Shutdown
///
/// A stream is one *incarnation* of the host. The agent ends with it, and all its trials do; the driver reads nothing
/// of a stream that it has given up. Before Begin is obeyed the agent holds a lock that every process of an earlier
/// incarnation would hold as well, so that none of those is left.
///
/// A checkpoint that is not small does not come in Pieces: an Offer with `by_content` is fetched from who offers it,
/// and a Source names where a wanted one is fetched, by the protocol of hypertune::transfer. Its connections are the
/// streams, each of which leads to the CheckpointServer of the other side: nothing listens anywhere for them.
///
/// Pieces of checkpoints and of streams go when nothing else waits to be sent, and at most `window` bytes are under
/// way: reports never wait behind more than that. Doubles travel bit by bit.
namespace wire {

inline constexpr std::uint32_t version = 8;

/// Stands before the agent's first frame, so that what a login shell prints before is told apart.
inline constexpr std::string_view banner = "\nhypertune-agent\n";
inline constexpr std::size_t max_preamble = std::size_t{64} << 10U;
inline constexpr std::size_t window = std::size_t{1} << 20U;       ///< bytes of pieces sent and not yet credited
inline constexpr std::size_t piece_size = std::size_t{64} << 10U;  ///< the longest piece
inline constexpr std::size_t max_addresses = 128;                  ///< of a host
inline constexpr std::size_t max_streams = 256;                    ///< at once, of those that one side has opened

struct Hello {
  std::uint32_t version = wire::version;
  std::int64_t pid = 0;
  std::string machine = {};  ///< architecture, as uname says
  Host host = {};            ///< its name for itself, what it has, and its addresses; none: too many, or not known
  double clock = 0;          ///< its time, for a hint where clocks are apart; nothing is decided by it
  bool by_content = false;   ///< it can give and fetch checkpoints by content
};
struct Welcome {
  std::uint32_t version = wire::version;
  std::string host_name = {};  ///< the driver's name for the host
  double heartbeat = 0.5;      ///< seconds between signs of life
  double liveness = 3;         ///< seconds without one until the driver gives the host up
};
struct Begin {
  std::string experiment = {};                  ///< names the folder of the experiment on the host
  std::uint64_t incarnation = 0;                ///< rises with every connection of the experiment
  Seconds hang_limit = 0;                       ///< of ExecutorStart
  std::uint64_t log_limit = default_log_limit;  ///< likewise
  std::string program = {};                     ///< what the agent makes its Program of
  std::string notice_command = {};              ///< polled for a termination notice: exit code 0 is one
  std::string notice_url = {};                  ///< polled by HTTP: status 200 is one
  double notice_interval = 5;
  bool by_content = false;         ///< checkpoints go by content, where they are longer than
  std::uint64_t inline_limit = 0;  ///< so many bytes
  std::string token = {};          ///< what proves that a peer belongs to the experiment: a secret
  std::uint64_t rate_limit = 0;    ///< bytes per second that it may send; 0: none
  bool direct = false;             ///< other hosts may fetch from it
  std::string direct_network =
      {};  ///< the network of the address for that, as "10.1.0.0/16"; empty: the one it is known by
  std::uint64_t direct_port = 0;  ///< 0: any
  std::string shared = {};        ///< the folder there that is said to be the driver's, too; empty: none
  std::string shared_proof = {};  ///< a file in it, which the agent shows that it has read
  std::string shared_area = {};   ///< the folder in it that it may write to
};
struct Heartbeat {
  std::uint64_t number = 0;
};
/// The receiver has consumed so many bytes of pieces.
struct Credit {
  std::uint64_t bytes = 0;
};
struct LogPiece {
  TrialId trial = 0;
  Attempt attempt = 0;
  std::string text = {};
  int member = 0;
};
/// What of the host is in use, by all its processes.
struct Usage {
  double cpu = 0;  ///< cores
  std::uint64_t memory = 0, memory_total = 0;
  std::vector<double> gpus = {};  ///< fraction of each device's time
  std::vector<std::uint64_t> gpu_memory = {};
};
/// The host will go away. `seconds`: when, as far as known; 0: at once.
struct Draining {
  std::string why = {};
  double seconds = 0;
};
struct CopyFile {
  std::string name;
  std::uint64_t size = 0;
  friend bool operator==(const CopyFile&, const CopyFile&) = default;
};
/// A sealed checkpoint's content follows in Pieces, file after file; or, `by_content`, can be fetched; or, `shared`,
/// lies where the driver can take it. `attempt`: that made it, where an agent offers.
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
/// Of an offered checkpoint: a copy is sealed here; or `error` says why not.
struct Taken {
  std::uint64_t transfer = 0;
  std::string error = {};
};
/// A checkpoint that `trial` is to go on from.
struct Want {
  std::uint64_t transfer = 0;
  TrialId trial = 0;
  CheckpointInfo info = {};
  bool from_driver = false;               ///< other hosts could not give it
  std::vector<std::string> without = {};  ///< endpoints of a Source that did not have it
};
/// Of a wanted one, or one that was offered: it does not come, or not to its end. `lost`: nor will it ever.
struct Unavailable {
  std::uint64_t transfer = 0;
  std::string why = {};
  bool lost = false;
};
struct Refusal {
  std::string why = {};
  bool permanent = true;  ///< another attempt would end alike
};
/// The agent ends. `clean`: what it has on its disk is not needed any more.
struct Shutdown {
  bool clean = true;
};
/// Where other hosts can fetch checkpoints from this one: an Endpoint's text.
struct Serving {
  std::string endpoint = {};
};
/// Where a wanted checkpoint is fetched: from one of these hosts, or, where there are none, from the driver.
struct Source {
  std::uint64_t transfer = 0;
  std::string content_id = {};          ///< names its content, where the driver knows; empty otherwise
  std::vector<std::string> peers = {};  ///< endpoints
};
/// A wanted one is here: what it took.
struct Fetched {
  std::uint64_t transfer = 0;
  std::uint64_t moved = 0, reused = 0;    ///< bytes
  bool direct = false;                    ///< from another host
  std::vector<std::string> without = {};  ///< endpoints of its Source that did not have it
};
/// The agent opens streams of odd numbers, the driver those of even ones.
struct StreamOpen {
  std::uint64_t stream = 0;
};
struct StreamPiece {
  std::uint64_t stream = 0;
  std::string bytes = {};
};
/// Nothing more comes, and nothing more is taken.
struct StreamEnd {
  std::uint64_t stream = 0;
};
/// What the agent found in the folder that is said to be shared, and what it wrote there; or `error`: why it cannot.
struct Proof {
  std::string read = {}, wrote = {}, error = {};
};
/// Whether checkpoints are written there.
struct Share {
  bool granted = false;
};

/// A message's place in this list (from 1) is its type on the wire: append only.
using Message = std::variant<Hello, Welcome, Begin, Heartbeat, Credit, Launch, Continue, Pause, Stop, Started, Reported,
                             Paused, Finished, Stopped, Failed, Notice, LogPiece, Usage, Draining, Offer, Piece, Taken,
                             Want, Unavailable, Refusal, Shutdown, Serving, Source, Fetched, StreamOpen, StreamPiece,
                             StreamEnd, Proof, Share, SaveFailed, GroupMessage>;

inline constexpr auto message_types = static_cast<std::uint8_t>(std::variant_size_v<Message>);

}  // namespace wire

}  // namespace hypertune::inline v0::remote
