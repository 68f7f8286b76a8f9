// ClusterJournal: records of the machines that were requested, exist and have ended.
#include <hypertune/cluster/detail/files.hpp>
#include <hypertune/cluster/detail/json.hpp>
#include <hypertune/cluster/journal.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/record/detail/journal_lock.hpp>

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <random>

namespace hypertune::inline v0::cluster {

WallTime wall_now() { return world_clock(); }

std::string new_token() {
  constexpr std::string_view letters = "0123456789abcdefghjkmnpqrstvwxyz";
  std::random_device random;
  std::string token = "ht-";
  for (int i = 0; i < 5; ++i) {
    std::uint32_t bits = random();
    for (int letter = 0; letter < 5; ++letter, bits >>= 5U) token += letters[bits & 31U];
  }
  return token;
}

std::filesystem::path state_root() {
  if (const char* own = std::getenv("HYPERTUNE_STATE"); own != nullptr && *own != '\0') return own;
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/')
    return std::filesystem::path(state) / "hypertune";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr && *home != '\0' ? home : "/tmp") / ".local/state/hypertune";
}
std::filesystem::path cluster_state(const std::string& name) { return state_root() / "clusters" / name; }

LedgerEntry* Ledger::find(std::string_view token) {
  for (auto& entry : entries)
    if (entry.token == token) return &entry;
  return nullptr;
}
const LedgerEntry* Ledger::find_id(std::string_view id) const {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
    if (entry->id == id) return &*entry;
  return nullptr;
}

CostReport Ledger::cost(WallTime now, const std::string& currency, bool all) const {
  CostReport report;
  report.currency = currency;
  const std::size_t first = all || generations.empty() ? 0 : generations.back().first;
  for (std::size_t i = first; i < entries.size(); ++i) {
    const auto& entry = entries[i];
    if (entry.launched_at <= 0) continue;
    const WallTime end = entry.state == LedgerEntry::State::gone ? entry.ended_at
                         : entry.stopped                         ? entry.stopped_at
                                                                 : now;
    report.add(entry.node_type, entry.spot, std::max(0.0, end - entry.launched_at - entry.paused) / 3600, entry.price,
               entry.on_demand, entry.open() && !entry.stopped);
  }
  return report;
}

namespace detail {

static std::filesystem::path journal_file(const std::filesystem::path& folder) { return folder / "journal.jsonl"; }
static std::filesystem::path driver_file(const std::filesystem::path& folder) { return folder / "driver.lock"; }

static void apply_record(Ledger& ledger, const json::object& record) {
  using State = LedgerEntry::State;
  const auto what = text_of(record, "op"), token = text_of(record, "token");
  const double time = number_in(record, "t");
  if (token.empty()) return;
  if (what == "want" || what == "adopt") {
    if (ledger.find(token) != nullptr) return;
    bool any = false;
    for (const auto& entry : ledger.entries) any = any || entry.open();
    if (!any) ledger.generations.emplace_back(ledger.entries.size(), ++ledger.generation);
    LedgerEntry entry;
    entry.token = token;
    entry.node_type = text_of(record, "type");
    entry.head = flag_in(record, "head");
    entry.spot = flag_in(record, "spot");
    entry.price = number_in(record, "price");
    entry.on_demand = number_in(record, "on_demand");
    entry.requested_at = time;
    ledger.entries.push_back(std::move(entry));
    if (what == "want") return;
  }
  auto* entry = ledger.find(token);
  if (entry == nullptr) return;
  if (what == "have" || what == "adopt") {
    entry->id = text_of(record, "id");
    if (const auto address = text_of(record, "address"); !address.empty()) entry->address = address;
    if (entry->state == State::requested || entry->state == State::refused || entry->state == State::gone)
      entry->state = State::exists;
    if (entry->launched_at <= 0) entry->launched_at = time;
  } else if (what == "refused") {
    entry->state = State::refused;
    entry->why = text_of(record, "why");
  } else if (what == "ready") {
    entry->ready = entry->answered = true;
    entry->setup = text_of(record, "setup");
  } else if (what == "unready") {
    entry->ready = false;
  } else if (what == "ending") {
    if (entry->open()) entry->state = State::ending;
    entry->why = text_of(record, "why");
  } else if (what == "gone") {
    if (entry->stopped) entry->paused += std::max(0.0, time - entry->stopped_at);
    entry->state = State::gone;
    entry->ended_at = time;
    entry->stopped = entry->ready = false;
  } else if (what == "stopped") {
    if (!entry->stopped) entry->stopped_at = time;
    entry->stopped = true;
    entry->ready = false;
    if (entry->state == State::ending) entry->state = State::exists;
  } else if (what == "started") {
    if (entry->stopped) entry->paused += std::max(0.0, time - entry->stopped_at);
    entry->stopped = false;
  }
}

// Malformed lines are skipped: a record that cannot be read must not hide the records after it.
static Ledger ledger_of(std::string_view text) {
  Ledger ledger;
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) break;  // incomplete last line
    if (const auto value = parse_json(text.substr(0, end)); value && value->is_object())
      apply_record(ledger, value->get_object());
    text.remove_prefix(end + 1);
  }
  return ledger;
}

}  // namespace detail

struct ClusterJournal::State {
  mutable std::mutex mutex;
  hypertune::detail::Descriptor lock, file;
  std::unique_ptr<hypertune::detail::NotInherited> alone;
  Ledger ledger;
};

std::string ClusterJournal::driver_of(const std::filesystem::path& folder) {
  const auto path = detail::driver_file(folder);
  const hypertune::detail::LockFile file(path, O_RDONLY);
  if (file.get() < 0) return {};
  struct flock lock = hypertune::detail::whole_file();
  if (::fcntl(file.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return {};
  return hypertune::detail::text_of(file.holder());
}

ClusterJournal::ClusterJournal(std::filesystem::path folder)
    : folder_(std::move(folder)), state_(std::make_unique<State>()) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) fail(Errc::io, "cannot make the folder '{}': {}", folder_.string(), error.message());
  std::filesystem::permissions(folder_, std::filesystem::perms::owner_all, error);  // addresses are private
  const auto driver = detail::driver_file(folder_);
  state_->lock = hypertune::detail::open_at(AT_FDCWD, driver.c_str(), O_RDWR | O_CREAT, 0600);
  if (!state_->lock) fail(Errc::io, "cannot open '{}': {}", driver.string(), std::strerror(errno));
  state_->alone = std::make_unique<hypertune::detail::NotInherited>(state_->lock.get());
  struct flock lock = hypertune::detail::whole_file();
  if (::fcntl(state_->lock.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES)
      fail(Errc::io, "cannot lock '{}': {}", driver.string(), std::strerror(errno));
    const auto who = driver_of(folder_);
    fail(Errc::busy, "the cluster '{}' is being worked on by another command ({}): wait until it ends, or stop it",
         folder_.filename().string(), who.empty() ? "it has just ended" : who);
  }
  const auto text = fmt::format("{} {}\n", ::getpid(), hypertune::detail::host_name());
  if (::ftruncate(state_->lock.get(), 0) == 0)
    static_cast<void>(!::pwrite(state_->lock.get(), text.data(), text.size(), 0));
  const auto path = detail::journal_file(folder_);
  state_->file = hypertune::detail::open_at(AT_FDCWD, path.c_str(), O_RDWR | O_CREAT | O_APPEND, 0600);
  if (!state_->file) fail(Errc::io, "cannot open '{}': {}", path.string(), std::strerror(errno));
  const auto content = detail::read_file(path).value_or("");
  if (const auto end = content.rfind('\n'); !content.empty() && end != content.size() - 1)
    if (::ftruncate(state_->file.get(), end == std::string::npos ? 0 : static_cast<off_t>(end + 1)) != 0)
      fail(Errc::io, "cannot write '{}': {}", path.string(), std::strerror(errno));
  state_->ledger = detail::ledger_of(content);
  detail::sync_folder(folder_);
}

ClusterJournal::~ClusterJournal() = default;

Ledger ClusterJournal::read(const std::filesystem::path& folder) {
  return detail::ledger_of(detail::read_file(detail::journal_file(folder)).value_or(""));
}

Ledger ClusterJournal::ledger() const {
  const std::lock_guard lock(state_->mutex);
  return state_->ledger;
}

void ClusterJournal::append(const std::string& line) {
  const std::lock_guard lock(state_->mutex);
  const auto path = detail::journal_file(folder_);
  detail::write_all(state_->file.get(), line + "\n", path);
  if (::fdatasync(state_->file.get()) != 0)
    fail(Errc::io, "cannot write '{}': {}", path.string(), std::strerror(errno));
  detail::apply_record(state_->ledger, detail::parse_json(line)->get_object());
}

namespace detail {
static json::object record(const char* what, std::string_view token) {
  return {{"t", wall_now()}, {"op", what}, {"token", json::string_view(token.data(), token.size())}};
}
}  // namespace detail

void ClusterJournal::requested(const LaunchRequest& request, double price, double on_demand) {
  auto record = detail::record("want", request.token);
  record["type"] = request.node_type;
  record["head"] = request.head;
  record["spot"] = request.spot;
  record["price"] = price;
  record["on_demand"] = on_demand;
  append(detail::json::serialize(record));
}
void ClusterJournal::created(const Machine& machine) {
  auto record = detail::record("have", machine.token);
  record["id"] = machine.id;
  record["address"] = machine.address;
  append(detail::json::serialize(record));
}
void ClusterJournal::adopt(const Machine& machine, double price, double on_demand) {
  auto record = detail::record("adopt", machine.token);
  record["id"] = machine.id;
  record["address"] = machine.address;
  record["type"] = machine.node_type;
  record["head"] = machine.head;
  record["spot"] = machine.spot;
  record["price"] = price;
  record["on_demand"] = on_demand;
  append(detail::json::serialize(record));
}
void ClusterJournal::refused(std::string_view token, std::string_view why) {
  auto record = detail::record("refused", token);
  record["why"] = detail::json::string_view(why.data(), why.size());
  append(detail::json::serialize(record));
}
void ClusterJournal::ending(std::string_view token, std::string_view why) {
  auto record = detail::record("ending", token);
  record["why"] = detail::json::string_view(why.data(), why.size());
  append(detail::json::serialize(record));
}
void ClusterJournal::ready(std::string_view token, std::string_view setup) {
  auto record = detail::record("ready", token);
  if (!setup.empty()) record["setup"] = detail::json::string_view(setup.data(), setup.size());
  append(detail::json::serialize(record));
}
void ClusterJournal::unready(std::string_view token) {
  append(detail::json::serialize(detail::record("unready", token)));
}
void ClusterJournal::gone(std::string_view token) { append(detail::json::serialize(detail::record("gone", token))); }
void ClusterJournal::stopped(std::string_view token) {
  append(detail::json::serialize(detail::record("stopped", token)));
}
void ClusterJournal::started(std::string_view token) {
  append(detail::json::serialize(detail::record("started", token)));
}

}  // namespace hypertune::inline v0::cluster
