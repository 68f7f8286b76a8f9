// Charts as SVG: numbers, ranges, marks, labels, room.
#include "support/test.hpp"

#include <chart.hpp>
#include <text.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

using namespace hypertune;
using namespace hypertune::plot;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

Axis seen(double least, double most) {
  Axis axis;
  axis.format = [](double value) { return number(value, 4); };
  axis.see(least);
  axis.see(most);
  return axis;
}

Chart dots(const std::vector<std::pair<double, double>>& points, bool log = false) {
  Panel panel;
  for (auto* axis : {&panel.x, &panel.y}) {
    axis->format = [](double value) { return number(value, 4); };
    axis->log = log;
  }
  panel.y.grid = panel.x.line = true;
  for (const auto& [x, y] : points) {
    panel.x.see(x);
    panel.y.see(y);
  }
  panel.add({}, [points](const Frame& frame) {
    std::string out;
    for (const auto& [x, y] : points) out += circle(frame.x(x), frame.y(y), 2, "#000000");
    return out;
  });
  Chart chart;
  chart.panels.push_back(std::move(panel));
  return chart;
}

std::size_t occurrences(const std::string& text, const std::string& of) {
  std::size_t n = 0;
  for (auto at = text.find(of); at != std::string::npos; at = text.find(of, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("numbers are as short and exact as on the page") {
  for (const auto& [value, text] : std::vector<std::pair<double, std::string>>{{0, "0"},
                                                                               {0.1 + 0.2, "0.3"},
                                                                               {1e-5, "1e-5"},
                                                                               {-0.25, "−0.25"},
                                                                               {12345, "12\u202f345"},
                                                                               {-1234567, "−1\u202f234\u202f567"},
                                                                               {0.9433583, "0.94336"},
                                                                               {1.5e9 + 0.5, "1.5e9"},
                                                                               {nan, "NaN"},
                                                                               {inf, "∞"},
                                                                               {-inf, "−∞"},
                                                                               {123.456789, "123.46"},
                                                                               {99999.5, "100\u202f000"},
                                                                               {0.5000001, "0.5"},
                                                                               {0.00123, "0.00123"},
                                                                               {0.00099, "9.9e-4"}})
    CHECK(number(value) == text);
  CHECK(number(1.25, 2) == "1.3");  // a half, exact in binary
  CHECK(number(-2.5, 1) == "−3");
  for (const auto& [value, text] : std::vector<std::pair<double, std::string>>{{0, "0 s"},
                                                                               {0.0123, "12 ms"},
                                                                               {9.96, "10 s"},
                                                                               {59.7, "1 min 00 s"},
                                                                               {61, "1 min 01 s"},
                                                                               {3599.6, "1 h 00 min"},
                                                                               {90061, "1 d 01 h"},
                                                                               {-61, "−1 min 01 s"}})
    CHECK(duration(value) == text);
  CHECK(share(0.004) == "<1\u202f%");
  CHECK(share(0.125) == "13\u202f%");
  std::string unicorns;
  for (int i = 0; i < 50; ++i) unicorns += "🦄";
  CHECK(shortened(unicorns, 4) == "🦄🦄🦄…");
  CHECK(shortened("four", 4) == "four");
  CHECK(shortened(std::string(10000, 'L'), 10) == "LLLLLLLLL…");
}

TEST_CASE("the widths of letters are those of Helvetica") {
  CHECK(text_width("iiii", 10) == 8.88);
  CHECK(text_width("WWWW", 10) == 37.76);
  CHECK(text_width("0", 1000) == 556);
  CHECK(text_width("学", 10) == 10);
}

TEST_CASE("names cannot leave their place in the SVG") {
  CHECK(escaped("<a href=\"x\">&") == "&lt;a href=&quot;x&quot;&gt;&amp;");
  CHECK(escaped(std::string("a\x07\x00\xFF\xEF\xBF\xBE z", 9)) == "a\uFFFD\uFFFD\uFFFD\uFFFD z");
}

TEST_CASE("a logarithmic axis on paper has marks, however short it is") {
  CHECK(log_marks(0.97, 9.6) == std::vector<double>{1, 2, 5});
  CHECK(log_marks(4e-4, 0.08) == std::vector<double>{0.001, 0.003, 0.01, 0.03});
  CHECK(log_marks(0.61, 0.999) == std::vector<double>{0.7, 0.8, 0.9});
  CHECK(log_marks(0.0009, 1.1) == std::vector<double>{0.001, 0.01, 0.1, 1});
  for (const auto& [low, high] :
       std::vector<std::pair<double, double>>{{1, 1.001}, {3e-9, 4e-9}, {1e-12, 1e12}, {5, 60}, {0.9, 1.1}}) {
    const auto marks = log_marks(low, high);
    CAPTURE(low, high, marks);
    CHECK(marks.size() >= 3);
    CHECK(marks.size() <= 12);
    CHECK(marks.front() >= low * (1 - 1e-6));
    CHECK(marks.back() <= high * (1 + 1e-6));
  }
  const auto rounded = [](std::vector<double> places) {
    for (auto& place : places) place = std::round(std::pow(10, place));
    return places;
  };
  CHECK(rounded(decades(16, 1024)) == std::vector<double>{30, 100, 300, 1000});
  CHECK(decades(0, 1).empty());
}

TEST_CASE("an axis ends at round marks, or where it is told to") {
  const auto ticks = [](const Axis& axis) { return scale_of(axis).ticks; };
  CHECK(ticks(seen(0.31, 0.97)) == std::vector<double>{0.2, 0.4, 0.6, 0.8, 1});
  CHECK(ticks(seen(5, 5)) == std::vector<double>{2, 3, 4, 5, 6, 7, 8});
  CHECK(ticks(seen(0, 0)).size() == 5);  // from 0 to 1.2
  Axis axis = seen(3, 17);
  axis.zero = axis.to_data = true;
  axis.least_interval = 1;
  CHECK(ticks(axis) == std::vector<double>{0, 5, 10, 15, 17});
  axis = seen(1, 2);
  axis.low = 0.5;
  axis.high = 2.5;
  CHECK(ticks(axis) == std::vector<double>{0.5, 1, 1.5, 2, 2.5});
  axis.interval = 1;
  CHECK(ticks(axis) == std::vector<double>{0.5, 1.5, 2.5});
  axis.ticks = {9, 2, 1, 1};
  CHECK(ticks(axis) == std::vector<double>{1, 2});
  axis = seen(0.002, 30);
  axis.log = true;
  CHECK(ticks(axis) == std::vector<double>{0.001, 0.01, 0.1, 1, 10, 100});
  CHECK(scale_of(axis).part(0.1) == 0.4);
}

TEST_CASE("no values break a picture") {
  constexpr double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  for (const bool log : {false, true})
    for (const auto& points :
         std::vector<std::vector<std::pair<double, double>>>{{},
                                                             {{1, 1}},
                                                             {{least, most}, {most, least}},
                                                             {{least, least}, {2 * least, 3 * least}},
                                                             {{1, 1 + 1e-16}},
                                                             {{1e300, 1e-300}, {1, 1}},
                                                             {{-most, -1}, {most, 1}}}) {
      if (log && !points.empty() && points.front().first < 0) continue;
      const auto svg = svg_of(dots(points, log), 300, 200, "", "");
      CHECK(occurrences(svg, "<circle") == points.size());
      CHECK(svg.ends_with("</svg>\n"));
    }
  CHECK(svg_of(dots({{1, 1}, {2, 2}}), 20, 20, "a title that is far too long", "").ends_with("</svg>\n"));
}

TEST_CASE("labels leave room for each other") {
  Chart chart = dots({{0, 0}, {1, 1}});
  Axis& axis = chart.panels[0].x;
  axis.low = 0;
  axis.high = 10;
  for (int i = 0; i <= 10; ++i) axis.ticks.push_back(i);
  axis.format = [](double value) { return "number " + number(value); };
  const auto labels = [&](int width) { return occurrences(svg_of(chart, width, 200, "", ""), "number "); };
  CHECK(labels(1000) == 11);
  CHECK(labels(300) > 1);
  CHECK(labels(300) < 6);
  // The last one is hidden before its neighbour, unless it has to be seen.
  const auto svg = [&] { return svg_of(chart, 560, 200, "", ""); };
  CHECK(svg().find("number 10<") == std::string::npos);
  axis.show_high = true;
  CHECK(svg().find("number 10<") != std::string::npos);
}

TEST_CASE("a legend that is wider than the picture has lines") {
  Chart chart = dots({{0, 0}, {1, 1}});
  for (const char* name : {"best so far", "completed", "stopped", "failed"})
    chart.legend.push_back({name, "#123456", "dot"});
  const auto wide = svg_of(chart, 640, 400, "", ""), narrow = svg_of(chart, 150, 400, "", "");
  CHECK(occurrences(wide, "y=\"12.5\" font-size=\"11\"") == 4);
  CHECK(occurrences(narrow, "y=\"12.5\"") == 0);
  for (const auto& name : {">best so far<", ">failed<"}) CHECK(narrow.find(name) != std::string::npos);
}
