// TerminalDisplay: the definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/show/detail/live_region.hpp>
#include <hypertune/show/detail/render.hpp>
#include <hypertune/show/detail/terminal_display.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

struct TerminalDisplay::State {
  explicit State(TerminalOptions o);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { close(); }

  void on_record(const Record& record);
  void print(std::string_view line);
  void write(const std::string& line);
  void close();
  void run();
  void show(const ExperimentProgress& p, bool last);
  void show_plain(const ExperimentProgress& p, bool last);

  const TerminalOptions options;
  const bool live;
  std::mutex mutex;  // protects tracker, closing, drawing, lines, and the start of thread
  ProgressTracker tracker;
  bool closing = false;
  bool drawing = false;            // the thread takes lines
  std::vector<std::string> lines;  // printed and not yet taken by it
  std::condition_variable wake;
  std::thread thread;
  std::chrono::steady_clock::time_point began;

  std::mutex output;  // protects all members below; taken after `mutex` is released
  detail::terminal::LiveRegion region;
  bool color, unicode;
  std::int64_t shown_improvements = 0, shown_failures = 0;
  double last_best = -1e9, last_summary = 0;
  bool announced = false;
};

TerminalDisplay::TerminalDisplay(TerminalOptions options) : state_(std::make_unique<State>(std::move(options))) {}
TerminalDisplay::~TerminalDisplay() = default;
std::unique_ptr<TerminalDisplay> TerminalDisplay::make(const TerminalOptions& options) {
  return std::make_unique<TerminalDisplay>(options);
}
void TerminalDisplay::catch_up(const Record& record) {
  const std::lock_guard lock(state_->mutex);
  state_->tracker.add(record, false);
}
void TerminalDisplay::set_capacity(Capacity capacity) {
  const std::lock_guard lock(state_->mutex);
  state_->tracker.set_capacity(std::move(capacity));
}
void TerminalDisplay::print(std::string_view line) { state_->print(line); }
bool TerminalDisplay::live() const { return state_->live; }
void TerminalDisplay::on_record(const Record& record) { state_->on_record(record); }

TerminalDisplay::State::State(TerminalOptions o)
    : options(std::move(o)),
      live(!options.quiet && !options.plain && detail::terminal::LiveRegion::possible(::fileno(options.stream))),
      tracker(options.capacity),
      began(std::chrono::steady_clock::now()),
      region(::fileno(options.stream), live) {
  const char* const no_color = std::getenv("NO_COLOR");
  color = no_color == nullptr || *no_color == '\0';
  unicode = detail::terminal::takes_unicode(std::getenv("LC_ALL"), std::getenv("LC_CTYPE"), std::getenv("LANG"),
                                            std::getenv("TERM"));
}

void TerminalDisplay::State::on_record(const Record& record) {
  const bool starts = std::holds_alternative<record::ExperimentStarted>(record.what);
  const bool ends = std::holds_alternative<record::ExperimentEnded>(record.what);
  {
    const std::lock_guard lock(mutex);
    tracker.add(record);
    if (starts && !options.quiet && !thread.joinable()) {
      closing = false;
      try {
        thread = std::thread([this] { run(); });
        drawing = true;
      } catch (const std::system_error&) {  // no more threads: the experiment goes on without a display
      }
    }
  }
  if (ends) {
    close();
    announced = false;  // the thread has ended; the experiment may be continued
  }
}

void TerminalDisplay::State::close() {
  {
    const std::lock_guard lock(mutex);
    closing = true;
  }
  wake.notify_one();
  if (thread.joinable()) thread.join();
}

void TerminalDisplay::State::run() {
  const auto every = std::chrono::duration<double>(live ? options.refresh : std::min(1.0, options.summary_every));
  std::unique_lock lock(mutex);
  for (;;) {
    tracker.tick(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    const bool last = closing;
    // Draws a copy, so that whoever feeds records or prints lines never waits for the terminal.
    const ExperimentProgress now = tracker.progress();
    const auto said = std::exchange(lines, {});
    drawing = !last;
    lock.unlock();
    const bool begins = !live && !announced;
    if (begins) show(now, last);
    {
      const std::lock_guard guard(output);
      for (const auto& line : said) write(line);
    }
    if (!begins) show(now, last);
    if (last) return;
    lock.lock();
    wake.wait_for(lock, every, [&] { return closing || !lines.empty(); });
  }
}

void TerminalDisplay::State::print(std::string_view line) {
  if (options.quiet) return;
  std::string text = detail::terminal::printable(line);
  {
    const std::lock_guard lock(mutex);
    if (drawing) {
      lines.push_back(std::move(text));
      wake.notify_one();
      return;
    }
  }
  const std::lock_guard lock(output);
  write(text);
}

void TerminalDisplay::State::write(const std::string& line) {
  if (live)
    region.print(line, region.size());
  else
    region.append(line);
}

void TerminalDisplay::State::show(const ExperimentProgress& p, bool last) {
  const std::lock_guard lock(output);
  std::fflush(options.stream);
  if (!live) return show_plain(p, last);
  const auto size = region.size();
  const RenderOptions how{
      .width = size.width, .height = std::max<std::size_t>(size.height, 2) - 1, .color = color, .unicode = unicode};
  region.draw(render(p, how), size);
  if (last) region.flush(500);
}

void TerminalDisplay::State::show_plain(const ExperimentProgress& p, bool last) {
  if (!announced) {
    region.append(start_text(p));
    announced = true;
  }
  if (p.improvements() > shown_improvements && (last || p.elapsed() - last_best >= 1)) {
    for (std::size_t i = 0; i < p.best().size(); ++i)
      if (p.best()[i]) region.append(best_line(p, i));
    shown_improvements = p.improvements();
    last_best = p.elapsed();
  }
  if (p.failures() > shown_failures) {
    region.append(detail::format("{}: {}, last {}", p.name(), failures_text(p), p.last_failure()));
    shown_failures = p.failures();
  }
  if (last) return region.append(end_text(p));
  if (p.elapsed() - last_summary >= options.summary_every) {
    region.append(summary_line(p));
    last_summary = p.elapsed();
  }
}

}  // namespace hypertune::inline v0
