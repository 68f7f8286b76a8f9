// Chart: panels with axes and marks, and how they become SVG. Places, sizes and colours are those of the page's charts in
// its light theme, with darker text.
#pragma once

#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::plot {

namespace colour {
inline constexpr std::string_view panel = "#ffffff", ink = "#111417", ink2 = "#2b3036", ink3 = "#464c53",
                                  line = "#b9bdb8", grid = "#e4e5e1", accent = "#1d5fa8", best = "#c9651a",
                                  bad = "#b5371f";
inline constexpr std::string_view series[] = {"#1d5fa8", "#d07a1f", "#12866a", "#a8408f", "#c4432b",
                                              "#708a1c", "#3a9fc4", "#7a6652", "#5b5bd0", "#8f949a"};
/// Of a trial's state; "pause" is a pause within a timeline.
std::string_view of_state(std::string_view state);
/// From bad (0) to good (1), with even steps in lightness, so that it can be read in grey too.
std::string mix(double at);
}  // namespace colour

/// A coordinate or size, with at most two decimals.
std::string coordinate(double value);

/// The data of a path: shape("M# #h#", {x, y, width}).
std::string shape(std::string_view format, std::initializer_list<double> numbers);

struct Text {
  double size = 11;
  std::string_view anchor = "start";  ///< start, middle or end
  std::string_view colour = colour::ink2;
  bool central = false;  ///< y is the text's middle, not its base
  std::string_view more = "";
};
std::string text_at(double x, double y, std::string_view text, const Text& how);

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

/// `more` are further attributes.
std::string rectangle(const Box& box, std::string_view fill, double radius = 0, std::string_view more = "");
std::string circle(double x, double y, double radius, std::string_view fill, std::string_view more = "");
std::string stroke(const std::string& path, std::string_view colour, double width = 1, std::string_view more = "");

/// Elements with common attributes; "" if there are none.
std::string group(std::string_view attributes, const std::string& elements);

struct Axis {
  std::string name;
  double name_gap = 9;
  bool log = false, inverse = false;
  bool zero = false;                ///< 0 is on it, if it is linear
  bool to_data = false;             ///< ends at the greatest value, not at the next mark
  std::optional<double> low, high;  ///< its ends, if they do not depend on the data
  double least_interval = 0;
  std::optional<double> interval;
  std::vector<double> ticks;     ///< instead of automatic ones
  std::vector<double> labelled;  ///< where labels are; none: at the ticks
  std::function<std::string(double)> format;
  double size = 10.5;
  std::string_view colour = colour::ink3;
  bool line = false, grid = false, labels = true;
  bool hide_overlap = true;
  std::optional<bool> show_low, show_high;  ///< the outermost labels; nullopt: if there is room
  double least = std::numeric_limits<double>::infinity(), most = -least;  ///< of the values seen

  void see(double value) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
};

/// An axis' range and marks.
struct Scale {
  bool log = false;
  double low = 0, high = 1;  ///< of a logarithmic one: powers of ten
  std::vector<double> ticks = {};
  double part(double value) const;  ///< from 0 to 1 within the range
};
Scale scale_of(const Axis& axis);

/// A panel's place in the picture.
struct Frame {
  Box box;
  Scale across, up;
  bool down = false;  ///< the vertical axis is inverse
  double x(double value) const { return box.x + across.part(value) * box.width; }
  double y(double value) const { return box.y + (down ? up.part(value) : 1 - up.part(value)) * box.height; }
  bool contains(double px, double py) const {
    return px >= box.x - 0.1 && px <= box.x + box.width + 0.1 && py >= box.y - 0.1 && py <= box.y + box.height + 0.1;
  }
};

struct Panel {
  using Draw = std::function<std::string(const Frame&)>;
  /// Drawn by `z`; within the same, first those that are not `above`.
  struct Layer {
    int z = 2;
    bool above = false, clip = false;
    Draw draw = {};
  };
  void add(Layer layer, Draw draw) {
    layer.draw = std::move(draw);
    layers.push_back(std::move(layer));
  }
  Axis x = {}, y = {};
  Box room = {};  ///< shares of the picture; width 0: the whole, but for `left`, `right`, `top`, `bottom` pixels
  double left = 6, right = 14, top = 4, bottom = 4;
  std::vector<Layer> layers = {};
};

/// A mark of a legend: line, dash, band, box, dot, ring (a dot with a white border) or cross.
struct Mark {
  std::string text;
  std::string_view colour, shape;
  double opacity = 1;
};

/// What is above a chart, for a width: its height and its SVG.
using Key = std::function<std::pair<double, std::string>(double width)>;
Key key_of_marks(std::vector<Mark> marks);
/// A bar of colours from bad to good with a label at each end; `from`: its first colour.
Key key_of_colours(const std::string& low, const std::string& high, const std::string& title, double from = 0,
                   int steps = 24);

/// A vertical axis of parallel coordinates.
struct Pole {
  std::string name;
  Axis axis;
};
struct Thread {
  std::vector<std::pair<std::size_t, double>> points = {};  ///< pole, value
  std::string colour;
  double opacity = 1, width = 1;
};

struct Chart {
  std::vector<Panel> panels = {};
  Key key = {};
  std::vector<Mark> legend = {};  ///< inside the chart, at the top right; shown if there are two or more
  std::vector<Pole> poles = {};   ///< of parallel coordinates, without panels
  std::vector<Thread> threads = {};
};

/// The marks of a logarithmic axis from `low` to `high`: powers of ten and as many multiples as necessary, or evenly
/// spaced marks in a short range.
std::vector<double> log_marks(double low, double high);
/// The marks of an axis of powers of ten: whole powers, and in a short range also 2, 3 and 5 times them.
std::vector<double> decades(double low, double high);

/// The picture. `font`: one or several names, with commas between them; "" for the usual ones.
std::string svg_of(Chart chart, int width, int height, const std::string& title, const std::string& font);

}  // namespace hypertune::inline v0::plot
