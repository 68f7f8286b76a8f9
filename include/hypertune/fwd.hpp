// Forward declarations of the public types, for headers that mention them and should compile quickly. Include this
// instead of declaring the types yourself: all names are in an inline namespace that contains the version, so a
// declaration outside of it would declare a different type.
#pragma once

namespace hypertune::inline v0 {

// error
enum class Errc;
class Error;

// space
class Params;
class SearchSpace;
template <class Config>
class Dim;
template <class Config>
class Space;

// trial
struct CheckpointInfo;
class Checkpoint;
class CheckpointWriter;
class Context;
class Program;
struct Report;
struct Resources;
class Training;
class TrialRun;

// record
class AnyCallback;
class Journal;
struct Record;
class Results;
struct TrialResult;

// search, schedule, execute
class AnyExecutor;
class AnyScheduler;
class AnySearcher;

// tune
struct Options;
class StopCondition;
template <class Config>
class Study;
class Tuner;

}  // namespace hypertune::inline v0
