// Text of charts: numbers as people write them (as the page's format.js does), widths without a font, XML.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hypertune::inline v0::plot {

/// `digits` significant digits, without trailing zeros; exponents in the short form 1e-5.
std::string number(double value, int digits = 5);
/// A whole number, its digits in groups of three.
std::string count(double value);
/// 0.25 is "25 %".
std::string share(double value);
/// Seconds in the two largest units: "3 h 05 min".
std::string duration(double seconds);
/// At most `length` characters; a longer text ends with "…".
std::string shortened(std::string_view text, std::size_t length);
/// The width in Helvetica, in pixels; there is no font to measure.
double text_width(std::string_view text, double size);
/// For a text or an attribute of XML. What XML does not allow becomes U+FFFD.
std::string escaped(std::string_view text);

}  // namespace hypertune::inline v0::plot
