#include "chart.hpp"

#include "text.hpp"

#include <hypertune/detail/stable_sort.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

namespace hypertune::inline v0::plot {

namespace colour {

std::string_view of_state(std::string_view state) {
  static const std::map<std::string_view, std::string_view> all{
      {"running", "#12866a"},   {"completed", "#3273b8"}, {"stopped", "#98a1ab"},
      {"paused", "#c08a1e"},    {"pending", "#cfd4d9"},   {"failed", "#c4432b"},
      {"preempted", "#8a5fb5"}, {"lost", "#d0789a"},      {"pause", "#e7dcc2"}};
  const auto found = all.find(state);
  return found == all.end() ? all.at("stopped") : found->second;
}

std::string mix(double at) {
  constexpr std::array<std::array<int, 3>, 7> stops{{{0xE9, 0xE6, 0xF0},
                                                     {0xC4, 0xCF, 0xE6},
                                                     {0x8F, 0xB8, 0xD6},
                                                     {0x4F, 0x9D, 0xBF},
                                                     {0x1F, 0x7F, 0xA0},
                                                     {0x0C, 0x5C, 0x7C},
                                                     {0x08, 0x39, 0x5A}}};
  const double place = std::clamp(at, 0.0, 1.0) * (stops.size() - 1);
  const std::size_t low = std::min(stops.size() - 2, static_cast<std::size_t>(place));
  const double part = place - static_cast<double>(low);
  const auto channel = [&](std::size_t i) {
    return std::lround(stops[low][i] * (1 - part) + stops[low + 1][i] * part);
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(1), channel(2));
}

}  // namespace colour

std::string coordinate(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string rectangle(const Box& box, std::string_view fill, double radius, std::string_view more) {
  const double r = std::min({radius, box.width / 2, box.height / 2}), w = box.width - 2 * r, h = box.height - 2 * r;
  const auto path = r <= 0
                        ? shape("M# #h#v#h#Z", {box.x, box.y, w, h, -w})
                        : shape("M# #h#a# # 0 0 1 # #v#a# # 0 0 1 # #h#a# # 0 0 1 # #v#a# # 0 0 1 # #Z",
                                {box.x + r, box.y, w, r, r, r, r, h, r, r, -r, r, -w, r, r, -r, -r, -h, r, r, r, -r});
  return fmt::format("<path d=\"{}\" fill=\"{}\" {}/>\n", path, fill, more);
}

std::string circle(double x, double y, double radius, std::string_view fill, std::string_view more) {
  return fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\" {}/>\n", coordinate(x), coordinate(y), radius,
                     fill, more);
}

std::string stroke(const std::string& path, std::string_view colour, double width, std::string_view more) {
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" {}/>\n", path, colour, width,
                     more);
}

std::string group(std::string_view attributes, const std::string& elements) {
  return elements.empty() ? "" : fmt::format("<g {}>\n{}</g>\n", attributes, elements);
}

std::string shape(std::string_view format, std::initializer_list<double> numbers) {
  std::string out;
  const double* number = numbers.begin();
  for (const char c : format) c == '#' ? out += coordinate(*number++) : out += c;
  return out;
}

std::string text_at(double x, double y, std::string_view text, const Text& how) {
  return fmt::format(R"(<text x="{}" y="{}" font-size="{}" fill="{}"{}{}{}>{}</text>)"
                     "\n",
                     coordinate(x), coordinate(y), how.size, how.colour,
                     how.anchor == "start" ? "" : fmt::format(R"( text-anchor="{}")", how.anchor),
                     how.central ? R"( dominant-baseline="central")" : "", how.more, escaped(text));
}

// ---- ranges and marks ----

namespace {

double power(double value) { return std::pow(10, value); }

int exponent_of(double value) {
  if (!(value > 0)) return 0;
  int exponent = static_cast<int>(std::floor(std::log10(value)));
  if (value / power(exponent) >= 10) ++exponent;
  return exponent;
}

// 1, 2, 3 or 5 times a power of ten.
double nice(double value) {
  const double unit = power(exponent_of(value)), f = value / unit;
  return (f < 1.5 ? 1 : f < 2.5 ? 2 : f < 4 ? 3 : f < 7 ? 5 : 10) * unit;
}

// How many decimals an interval's multiples have.
int decimals_of(double interval) {
  double unit = 1;
  for (int decimals = 0; decimals < 15; ++decimals, unit *= 10)
    if (std::round(interval * unit) / unit == interval) return decimals;
  return 18;
}

double rounded(double value, int decimals) {
  return std::strtod(fmt::format("{:.{}f}", value, std::min(decimals, 20)).c_str(), nullptr);
}

}  // namespace

double Scale::part(double value) const { return ((log ? std::log10(value) : value) - low) / (high - low); }

Scale scale_of(const Axis& axis) {
  Scale scale{.log = axis.log};
  const bool fixed_low = axis.low.has_value(), fixed_high = axis.high.has_value() || axis.to_data;
  double low = axis.low.value_or(axis.least), high = axis.high.value_or(axis.most);
  if (!std::isfinite(low) || !std::isfinite(high)) return scale;
  if (axis.zero && !axis.log) {
    if (low > 0 && high > 0 && !fixed_low) low = 0;
    if (low < 0 && high < 0 && !fixed_high) high = 0;
  }
  if (axis.log) low = std::log10(low), high = std::log10(high);
  if (!std::isfinite(high - low)) return scale;
  if (low > high) std::swap(low, high);
  if (low == high && low == 0) {
    high = 1;
  } else if (low == high) {
    const double around = std::abs(low) / 2;
    low -= around;
    if (!fixed_high) high += around;
  }
  double step = 0;
  if (axis.log) {
    step = std::max(power(exponent_of(high - low)), 1.0);
    if (4 / (high - low) * step <= 0.5) step *= 10;
  } else {
    step = std::max(nice((high - low) / 4), axis.least_interval);
  }
  int decimals = decimals_of(step) + 2;
  double first = rounded(std::ceil(low / step) * step, decimals);
  double last = rounded(std::floor(high / step) * step, decimals);
  if (!fixed_low) low = rounded(std::floor(low / step) * step, decimals);
  if (!fixed_high) high = rounded(std::ceil(high / step) * step, decimals);
  if (axis.interval) {
    step = *axis.interval;
    decimals = decimals_of(step) + 2;
    first = low;
    last = high;
  }
  scale.low = low;
  scale.high = high;
  const auto raw = [&](double value) { return axis.log ? power(value) : value; };
  if (!axis.ticks.empty()) {
    for (const double tick : axis.ticks)
      if (tick >= raw(low) && tick <= raw(high)) scale.ticks.push_back(tick);
    std::sort(scale.ticks.begin(), scale.ticks.end());
    scale.ticks.erase(std::unique(scale.ticks.begin(), scale.ticks.end()), scale.ticks.end());
    return scale;
  }
  if (low < first) scale.ticks.push_back(raw(low));
  double tick = first;
  while (tick <= last && scale.ticks.size() < 3000) {
    scale.ticks.push_back(raw(tick));
    const double next = rounded(tick + step, decimals);
    if (next == tick) break;
    tick = next;
  }
  if (scale.ticks.empty() || raw(high) > scale.ticks.back()) scale.ticks.push_back(raw(high));
  return scale;
}

std::vector<double> log_marks(double low, double high) {
  const auto inside = [&](double mark) { return mark >= low * (1 - 1e-9) && mark <= high * (1 + 1e-9); };
  const int first = static_cast<int>(std::floor(std::log10(low))), last = static_cast<int>(std::ceil(std::log10(high)));
  for (const auto& parts : {std::vector{1}, std::vector{1, 3}, std::vector{1, 2, 5}, std::vector{1, 2, 3, 5, 7}}) {
    std::vector<double> marks;
    const int step = parts.size() > 1 ? 1 : std::max(1, (last - first + 6) / 7);
    for (int exponent = first; exponent <= last; exponent += step)
      for (const int part : parts)
        if (const double mark = std::strtod(fmt::format("{}e{}", part, exponent).c_str(), nullptr); inside(mark))
          marks.push_back(mark);
    if (marks.size() > 2) return marks;
  }
  const double rough = (high - low) / 4, unit = power(std::floor(std::log10(rough)));
  double step = unit;
  for (const int part : {2, 5, 10})
    if (part * unit <= rough * 1.2) step = part * unit;
  std::vector<double> marks;
  for (double mark = std::ceil(low / step) * step; inside(mark) && marks.size() < 20; mark += step)
    marks.push_back(std::strtod(fmt::format("{:.8g}", mark).c_str(), nullptr));
  return marks;
}

std::vector<double> decades(double low, double high) {
  if (!(low > 0) || !(high > low) || !std::isfinite(high)) return {};
  const double from = std::log10(low), to = std::log10(high);
  const auto parts = to - from >= 2 ? std::vector{1} : to - from >= 1 ? std::vector{1, 3} : std::vector{1, 2, 5};
  std::vector<double> marks;
  const int step = std::max(1, static_cast<int>(std::ceil((to - from) / 8)));
  for (int exponent = static_cast<int>(std::floor(from)); exponent <= std::ceil(to); exponent += step)
    for (const int part : parts)
      if (const double place = exponent + std::log10(part); place >= from - 1e-9 && place <= to + 1e-9)
        marks.push_back(std::strtod(fmt::format("{:.12g}", place).c_str(), nullptr));
  return marks.size() > 1 ? marks : std::vector<double>();
}

// ---- keys ----

namespace {

// A line in the middle of a pixel, so that it is sharp.
double sharp(double place) { return std::floor(std::round(place * 2) / 2) + 0.5; }

std::string rule(double x0, double y0, double x1, double y1, std::string_view colour) {
  return stroke(shape("M# #L# #", {x0, y0, x1, y1}), colour);
}

}  // namespace

Key key_of_marks(std::vector<Mark> marks) {
  return [marks = std::move(marks)](double width) {
    struct Line {
      double width = 0;
      std::vector<std::pair<double, const Mark*>> marks;
    };
    std::vector<Line> lines(1);
    double x = 0;
    for (const auto& mark : marks) {
      const double own = 20 + text_width(mark.text, 11) + 14;
      if (x + own > width - 20 && !lines.back().marks.empty()) {
        lines.emplace_back();
        x = 0;
      }
      lines.back().marks.emplace_back(x, &mark);
      x += own;
      lines.back().width = x - 14;
    }
    std::string svg;
    for (std::size_t row = 0; row < lines.size(); ++row)
      for (const auto& [at, mark] : lines[row].marks) {
        const double left = std::max(4.0, width - 14 - lines[row].width) + at, y = 18 * static_cast<double>(row);
        const Box box{left, y + 6, 14, 10};
        const std::string line = shape("M# #h14", {left, y + 11});
        if (mark->shape == "line") svg += stroke(line, mark->colour, 2);
        if (mark->shape == "dash") svg += stroke(line, mark->colour, 1.5, R"(stroke-dasharray="5 3")");
        if (mark->shape == "band") svg += rectangle(box, mark->colour, 0, R"(fill-opacity="0.15")");
        if (mark->shape == "box") svg += rectangle(box, mark->colour, 2);
        if (mark->shape == "dot") svg += circle(left + 7, y + 11, 3.5, mark->colour);
        if (mark->shape == "cross") svg += stroke(shape("M# #l6 6m0-6l-6 6", {left + 4, y + 8}), mark->colour, 1.2);
        svg += text_at(left + 20, y + 15, mark->text, {});
      }
    return std::pair(marks.empty() ? 0.0 : 6 + 18 * static_cast<double>(lines.size()), svg);
  };
}

Key key_of_colours(const std::string& low, const std::string& high, const std::string& title, double from, int steps) {
  return [=](double width) {
    const double bar = std::clamp(width * 0.25, 60.0, 160.0), low_width = text_width(low, 11);
    const double lead = title.empty() ? 0 : text_width(title, 11) + 12;
    double x = std::max(4.0, width - 14 - (lead + low_width + bar + text_width(high, 11) + 12));
    std::string svg = title.empty() ? "" : text_at(x, 15, title, {});
    x += lead;
    svg += text_at(x, 15, low, {});
    x += low_width + 6;
    for (int i = 0; i < steps; ++i)
      svg += rectangle({x + bar * i / steps, 6, bar / steps + (i + 1 < steps ? 0.3 : 0), 9},
                       colour::mix(from + (1 - from) * i / (steps - 1)));
    return std::pair(24.0, svg + text_at(x + bar + 6, 15, high, {}));
  };
}

// ---- axes ----

namespace {

constexpr double label_gap = 8, label_side = 3;  // between axis and label; the room that a label keeps at its sides

struct Label {
  double value;
  std::string text;
  Box box;
  bool hidden = false;
  bool was_hidden = false;
};

bool overlap(const Box& a, const Box& b, double touch) {
  return a.x + touch <= b.x + b.width - touch && b.x + touch <= a.x + a.width - touch &&
         a.y + touch <= b.y + b.height - touch && b.y + touch <= a.y + a.height - touch;
}

// Hides labels that overlap others: an outermost one, or its neighbour if the outermost is to be seen; then the others,
// from the lowest on.
void hide(const Axis& axis, std::vector<Label>& labels) {
  if (!axis.hide_overlap) return;
  const auto outermost = [](const std::optional<bool>& show, Label& outer, Label& inner) {
    if ((show && !*show) || outer.was_hidden)
      outer.hidden = true;
    else if (inner.was_hidden)
      inner.hidden = true;
    else if (!outer.hidden && !inner.hidden && overlap(outer.box, inner.box, 0.1))
      (show ? inner : outer).hidden = true;
  };
  if (const std::size_t n = labels.size(); n > 1) {
    outermost(axis.show_low, labels[0], labels[1]);
    outermost(axis.show_high, labels[n - 1], labels[n - 2]);
  }
  std::vector<Label*> order;
  for (const bool was : {true, false})
    for (auto& label : labels)
      if (!label.hidden && label.was_hidden == was) order.push_back(&label);
  std::vector<const Label*> shown;
  for (Label* label : order) {
    label->hidden = std::any_of(shown.begin(), shown.end(),
                                [&](const Label* other) { return overlap(label->box, other->box, 0.05); });
    if (!label->hidden) shown.push_back(label);
  }
}

// Axes and their texts around a panel.
class Layout {
 public:
  Layout(const Panel& panel, Box outer, double whole_width, double whole_height)
      : panel_(panel), whole_width_(whole_width), whole_height_(whole_height) {
    frame.across = scale_of(panel.x);
    frame.up = scale_of(panel.y);
    frame.down = panel.y.inverse;
    frame.box = outer;
    make_labels(panel.x, frame.across, x_labels);
    make_labels(panel.y, frame.up, y_labels);
    place();
    shrink(outer);
    place();
  }

  std::string svg() const {
    std::string out;
    const Box& box = frame.box;
    if (panel_.y.grid)
      for (const double tick : frame.up.ticks) out += across(frame.y(tick), colour::grid);
    if (!panel_.y.name.empty())
      out += text_at(box.x - 4, box.y - panel_.y.name_gap - 5.5, panel_.y.name, {.central = true});
    if (!panel_.x.name.empty())
      out += text_at(box.x + box.width / 2, name_top() + 5.5, panel_.x.name, {.anchor = "middle", .central = true});
    if (panel_.x.line) out += across(box.y + box.height, colour::line);
    for (const auto* labels : {&y_labels, &x_labels}) {
      const bool up = labels == &y_labels;
      const Axis& axis = up ? panel_.y : panel_.x;
      for (const auto& [value, text, at, hidden, was] : *labels)
        if (!hidden && !text.empty())
          out += text_at(up ? box.x - label_gap : at.x + at.width / 2, at.y + at.height / 2, text,
                         {.size = axis.size, .anchor = up ? "end" : "middle", .colour = axis.colour, .central = true});
    }
    return out;
  }

  Frame frame;
  std::vector<Label> x_labels, y_labels;

 private:
  static void make_labels(const Axis& axis, const Scale& scale, std::vector<Label>& labels) {
    if (!axis.labels) return;
    for (const double tick : axis.labelled.empty() ? scale.ticks : axis.labelled)
      labels.push_back({.value = tick, .text = axis.format(tick), .box = {}});
  }

  void place() {
    const auto& box = frame.box;
    for (auto* labels : {&x_labels, &y_labels}) {
      const bool across = labels == &x_labels;
      const double size = across ? panel_.x.size : panel_.y.size;
      for (auto& label : *labels) {
        const double width = text_width(label.text, size) + 2 * label_side;
        label.box = across ? Box{frame.x(label.value) - width / 2, box.y + box.height + label_gap, width, size}
                           : Box{box.x - label_gap + label_side - width, frame.y(label.value) - size / 2, width, size};
        label.was_hidden = std::exchange(label.hidden, false);
      }
      hide(across ? panel_.x : panel_.y, *labels);
    }
  }

  // Small panels keep less room around names.
  bool low() const { return frame.box.height <= whole_height_ / 2; }
  bool narrow() const { return frame.box.width <= whole_width_ / 2; }

  // The name of the horizontal axis is below its labels.
  double name_top() const {
    const bool any = std::any_of(x_labels.begin(), x_labels.end(), [](const Label& label) { return !label.hidden; });
    const double below = any ? label_gap + panel_.x.size + (low() ? 1 : 5) - 0.1 : 0;
    return frame.box.y + frame.box.height + std::max(panel_.x.name_gap, below);
  }

  // Leaves room for texts within `outer`. A text in the middle of an axis moves with it.
  void shrink(const Box& outer) {
    std::array<double, 4> margin{};  // left, right, top, bottom
    const auto room = [&](const Box& text, double part_x, double part_y) {
      const auto add = [&](std::size_t at, double beyond, double part) {
        margin[at] = std::max(margin[at], beyond > 0 && part > 1e-4 ? beyond / part : beyond);
      };
      add(0, outer.x - text.x, 1 - part_x);
      add(1, text.x + text.width - outer.x - outer.width, part_x);
      add(2, outer.y - text.y, 1 - part_y);
      add(3, text.y + text.height - outer.y - outer.height, part_y);
    };
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const auto& label : x_labels)
      if (!label.hidden) room(label.box, frame.across.part(label.value), nan);
    for (const auto& label : y_labels)
      if (!label.hidden) room(label.box, nan, 1 - frame.up.part(label.value));
    const auto& box = frame.box;
    if (!panel_.x.name.empty()) {
      const double width = text_width(panel_.x.name, 11) + 2 * label_side, around = low() ? 1 : 5;
      room({box.x + (box.width - width) / 2, name_top() - around, width, 11 + 2 * around}, 0.5, nan);
    }
    if (!panel_.y.name.empty()) {
      const double side = narrow() ? 1 : 3;
      room({box.x - 4 - side, box.y - panel_.y.name_gap - 11, text_width(panel_.y.name, 11) + 2 * side, 11}, nan, nan);
    }
    const auto fit = [](double& at, double& size, double before, double after) {
      const double old = size;
      size -= before + after;
      if (size >= old / 4) {
        at += before;
      } else {  // not less than a quarter
        size = old / 4;
        at += before <= 0 ? 0 : after <= 0 ? old - size : (old - size) * before / (before + after);
      }
    };
    fit(frame.box.x, frame.box.width, margin[0], margin[1]);
    fit(frame.box.y, frame.box.height, margin[2], margin[3]);
  }

  std::string across(double y, std::string_view colour) const {
    return rule(frame.box.x, sharp(y), frame.box.x + frame.box.width, sharp(y), colour);
  }

  const Panel& panel_;
  double whole_width_, whole_height_;
};

std::string clip_path(const std::string& id, const Box& box) {
  return fmt::format("<clipPath id=\"{}\">{}</clipPath>\n", id, rectangle(box, "#000"));
}

std::string panels_svg(const std::vector<Panel>& panels, double width, double height) {
  std::string axes, definitions;
  struct Part {
    const Panel::Layer* layer;
    std::size_t panel;
  };
  std::vector<Part> parts;
  std::vector<Frame> frames;
  for (const auto& panel : panels) {
    const Box outer =
        panel.room.width > 0
            ? Box{panel.room.x * width, panel.room.y * height, panel.room.width * width, panel.room.height * height}
            : Box{panel.left, panel.top, width - panel.left - panel.right, height - panel.top - panel.bottom};
    const Layout layout(panel, outer, width, height);
    axes += layout.svg();
    for (const auto& layer : panel.layers) parts.push_back({&layer, frames.size()});
    const Box& box = layout.frame.box;  // a line on its edge is not cut
    definitions +=
        clip_path(fmt::format("panel-{}", frames.size()), {box.x - 1, box.y - 1, box.width + 2, box.height + 2});
    frames.push_back(layout.frame);
  }
  hypertune::detail::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::pair(a.layer->z, a.layer->above) < std::pair(b.layer->z, b.layer->above);
  });
  std::string marks;
  for (const auto& [layer, panel] : parts) {
    const std::string drawn = layer->draw(frames[panel]);
    marks += layer->clip ? group(fmt::format("clip-path=\"url(#panel-{})\"", panel), drawn) : drawn;
  }
  return "<defs>\n" + definitions + "</defs>\n" + axes + marks;
}

std::string poles_svg(const Chart& chart, double width, double height) {
  const Box box{44, 34, std::max(1.0, width - 44 - 70), std::max(1.0, height - 34 - 16)};
  const auto n = static_cast<double>(chart.poles.size());
  std::vector<Scale> scales;
  std::vector<double> places;
  for (const auto& pole : chart.poles) {
    places.push_back(n > 1 ? box.x + box.width * static_cast<double>(scales.size()) / (n - 1) : box.x);
    scales.push_back(scale_of(pole.axis));
  }
  const auto y = [&](std::size_t pole, double value) { return box.y + box.height * (1 - scales[pole].part(value)); };
  std::string out = "<defs>\n" + clip_path("threads", box) + "</defs>\n<g clip-path=\"url(#threads)\">\n";
  for (const auto& thread : chart.threads) {
    std::string path;
    for (const auto& [pole, value] : thread.points)
      path += shape(path.empty() ? "M# #" : "L# #", {places[pole], y(pole, value)});
    out += stroke(path, thread.colour, thread.width, fmt::format("stroke-opacity=\"{:.3g}\"", thread.opacity));
  }
  out += "</g>\n";
  for (std::size_t i = 0; i < chart.poles.size(); ++i) {
    out += rule(sharp(places[i]), box.y + box.height, sharp(places[i]), box.y, colour::ink3);
    out += text_at(places[i], box.y - 12 - 5.5, chart.poles[i].name,
                   {.anchor = "middle", .colour = colour::ink, .central = true});
  }
  for (std::size_t i = 0; i < chart.poles.size(); ++i) {
    std::vector<Label> labels;
    for (const double tick : scales[i].ticks) {
      labels.push_back({.value = tick, .text = chart.poles[i].axis.format(tick), .box = {}});
      labels.back().box = {places[i], y(i, tick) - 6.5, 1, 13};
    }
    Axis ends;
    ends.show_low = ends.show_high = true;
    hide(ends, labels);
    for (const auto& label : labels)
      if (!label.hidden && !label.text.empty())
        out += text_at(
            places[i] + label_gap, label.box.y + 6.5, label.text,
            {.size = 10, .central = true, .more = R"( stroke="#ffffff" stroke-width="3" paint-order="stroke")"});
  }
  return out;
}

// The legend in the chart's first line, at the right.
std::string legend_svg(const std::vector<Mark>& marks, double width) {
  std::string out;
  double x = width - 13;
  for (std::size_t i = marks.size(); i-- > 0;) {
    const Mark& mark = marks[i];
    const bool box = mark.shape == "box", round = mark.shape == "dot" || mark.shape == "ring";
    const double icon = round ? 7 : 10;
    x -= icon + 5 + text_width(mark.text, 11);
    if (round)
      out += circle(x + 3.5, 12.5, mark.shape == "ring" ? 2.5 : 3.5, mark.colour,
                    fmt::format("fill-opacity=\"{}\"", mark.opacity));
    else
      out += rectangle(box ? Box{x + 1, 9.5, 8, 6} : Box{x, 11, 10, 3}, mark.colour, 0.75);
    out += text_at(x + icon + 5, 12.5, mark.text, {.central = true});
    x -= box ? 13 : 12;
  }
  return out;
}

double legend_width(const std::vector<Mark>& marks) {
  double sum = 13;
  for (const auto& mark : marks) sum += 27 + text_width(mark.text, 11);
  return sum;
}

// On paper a logarithmic axis ends at its least and greatest value: at powers of ten a range of less than one of them
// would have hardly any mark.
void fit_log_axis(Axis& axis) {
  if (!axis.log || !(axis.most > axis.least)) return;
  const double pad = std::pow(axis.most / axis.least, 0.03), low = axis.least / pad, high = axis.most * pad;
  if (!(low > 0) || !std::isfinite(high)) return;
  auto marks = log_marks(low, high);
  if (marks.size() < 2) return;
  axis.low = low;
  axis.high = high;
  axis.ticks = std::move(marks);
  axis.show_high = true;
}

}  // namespace

std::string svg_of(Chart chart, int width, int height, const std::string& title, const std::string& font) {
  double top = 0;
  std::string around;
  if (!title.empty()) {
    const double size = std::clamp(15.0 * (width - 16) / std::max(1.0, text_width(title, 15 * 1.06)), 8.0, 15.0);
    around += text_at(width / 2.0, 20, title,
                      {.size = std::round(size * 100) / 100,
                       .anchor = "middle",
                       .colour = colour::ink,
                       .more = R"( font-weight="bold")"});
    top += 28;
  }
  if (chart.legend.size() < 2) chart.legend.clear();
  if (legend_width(chart.legend) > width) chart.key = key_of_marks(std::exchange(chart.legend, {}));  // it has lines
  if (chart.key)
    if (const auto [room, svg] = chart.key(width); room > 0) {
      around += fmt::format("<g transform=\"translate(0 {})\">\n{}</g>\n", top, svg);
      top += room;
    }
  const double rest = std::max(80.0, height - top);
  for (auto& panel : chart.panels) {
    if (width < 520 && !chart.legend.empty()) panel.top = 24;  // there is no room for it beside the axis' name
    fit_log_axis(panel.x);
    fit_log_axis(panel.y);
  }
  const std::string head = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="{0}" height="{1}" viewBox="0 0 {0} {1}" )"
      R"(xml:space="preserve">)"
      "\n"
      R"(<rect width="{0}" height="{1}" fill="#ffffff"/>)"
      "\n"
      R"(<g font-family="{2}">)",
      width, height, escaped(font.empty() ? "Helvetica, Arial, Liberation Sans, sans-serif" : font));
  return fmt::format("{}\n{}<g transform=\"translate(0 {})\">\n{}{}</g>\n</g>\n</svg>\n", head, around, top,
                     chart.poles.empty() ? panels_svg(chart.panels, width, rest) : poles_svg(chart, width, rest),
                     legend_svg(chart.legend, width));
}

}  // namespace hypertune::inline v0::plot
