// Constraints written as text: "hidden1 >= hidden2", "lr * batch < 1 and optimizer != adam".
#pragma once

#include <hypertune/detail/nearest.hpp>
#include <hypertune/error.hpp>
#include <hypertune/space/detail/model.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// A constraint over the parameters of one space, parsed and ready to be evaluated on points. The grammar, loosest
/// binding first:
///     or  ||    and  &&    not  !    < <= > >= == !=    + -    * /    - (sign)    ^ (power)
/// over numbers, parameters by name (letters, digits, _ and dots; any other name in `backquotes`), parentheses, true,
/// false, and the functions abs exp log log2 log10 sqrt floor ceil round min max. Comparisons chain as in mathematics:
/// 0 < a < b. A parameter whose values are texts can only be compared by == and != with one of its values, quoted or
/// not. A constraint is met if a parameter in it is not active.
///
/// A hand-written recursive-descent parser. It checks types and names during parsing, so that error messages can be
/// precise, and it compiles fast. Malformed text gives an Error of kind `input` that quotes the place.
class Expression {
 public:
  static constexpr std::size_t max_length = 2000;
  static constexpr int max_depth = 50;  // of parentheses and signs; also bounds the stack of values

  Expression(std::string_view text, const SpaceModel& model) : text_(text), model_(&model) {
    if (text.size() > max_length) fail(Errc::input, "a constraint is longer than {} characters: split it", max_length);
    next();
    const Type type = disjunction();
    if (now_.token != Token::end) stop("an operator or the end");
    if (type != Type::truth)
      fail(Errc::input, "the constraint '{}' compares nothing: add <, <=, >, >=, == or !=", text);
    finish();
  }

  /// An expression that computes a number from the parameters before dimension `of`. It may draw random numbers by
  /// uniform(low, high) and integer(low, high).
  static Expression computing(std::string_view text, const SpaceModel& model, std::size_t of) {
    return Expression(text, model, of);
  }

  static constexpr double exact_limit = 0x1p53;  // whole numbers up to here are exact

  double value(const Point& point, Rng& rng) const { return run(point, &rng); }
  /// Whether value() is always a whole number: sums, differences, products and powers of whole numbers are, and whatever
  /// floor, ceil, round and integer() give.
  bool whole() const { return whole_; }
  /// Whether it draws random numbers.
  bool draws() const {
    return std::any_of(program_.begin(), program_.end(),
                       [](const Op& op) { return op.code == Code::uniform || op.code == Code::integer; });
  }
  const std::vector<std::size_t>& mentioned() const { return mentioned_; }

  /// Whether `point` meets the constraint. A comparison with an undefined number (log of -1) is false.
  bool holds(const Point& point) const {
    for (const std::size_t d : mentioned_)
      if (!is_active(point[d])) return true;
    return run(point, nullptr) != 0;
  }

 private:
  Expression(std::string_view text, const SpaceModel& model, std::size_t of)
      : text_(text), model_(&model), what_("expression"), of_(of) {
    if (text.size() > max_length) fail(Errc::input, "an expression is longer than {} characters", max_length);
    next();
    want(disjunction(), Type::number);
    if (now_.token != Token::end) stop("an operator or the end");
    finish();
  }
  void finish() {
    whole_ = computes_whole();
    std::sort(mentioned_.begin(), mentioned_.end());
    mentioned_.erase(std::unique(mentioned_.begin(), mentioned_.end()), mentioned_.end());
    model_ = nullptr;  // the expression outlives the model
    text_ = {};
  }

  // What is known of a number before it is computed. Each one includes those after it.
  enum class Known : std::uint8_t { real, whole, count };  // a count is not negative

  // Goes through the program as run() does, with what is known of the numbers in their place.
  bool computes_whole() const {
    std::vector<Known> stack;
    for (const Op& op : program_) {
      if (op.arity == 0) {
        stack.push_back(op.known);
        continue;
      }
      const Known last = stack.back();
      if (op.arity == 2) stack.pop_back();
      Known& first = stack.back();
      switch (op.code) {
        case Code::negate:
        case Code::subtract: first = std::min({first, last, Known::whole}); break;
        case Code::add:
        case Code::multiply:
        case Code::min:
        case Code::max: first = std::min(first, last); break;
        case Code::power: first = last == Known::count ? first : Known::real; break;
        case Code::abs: first = first == Known::real ? Known::real : Known::count; break;
        case Code::floor:
        case Code::ceil:
        case Code::round: first = std::max(first, Known::whole); break;
        case Code::integer: first = std::max(std::min(first, last), Known::whole); break;
        default: first = Known::real;
      }
    }
    return stack.back() != Known::real;
  }

  double run(const Point& point, Rng* rng) const {
    std::array<double, stack_size> stack;  // NOLINT: written before it is read
    std::size_t top = 0;
    for (const Op& op : program_) {
      if (op.code == Code::number) {
        stack[top++] = op.number;
      } else if (op.code == Code::parameter) {
        stack[top++] = op.table.empty() ? point[op.index] : op.table[static_cast<std::size_t>(point[op.index])];
      } else if (op.arity == 1) {
        stack[top - 1] = apply(op.code, stack[top - 1], 0);
      } else {
        --top;
        stack[top - 1] = op.code == Code::uniform || op.code == Code::integer
                             ? random(op.code, stack[top - 1], stack[top], *rng)
                             : apply(op.code, stack[top - 1], stack[top]);
      }
    }
    return stack[0];
  }
  enum class Type : std::uint8_t { number, truth };
  enum class Token : std::uint8_t { end, number, name, text, symbol };
  enum class Code : std::uint8_t {
    number,
    parameter,
    negate,
    add,
    subtract,
    multiply,
    divide,
    power,
    less,
    less_equal,
    greater,
    greater_equal,
    equal,
    not_equal,
    both,
    either,
    none,
    abs,
    exp,
    log,
    log2,
    log10,
    sqrt,
    floor,
    ceil,
    round,
    min,
    max,
    uniform,
    integer
  };
  struct Op {
    Code code;
    int arity = 0;
    double number = 0;
    std::size_t index = 0;
    std::vector<double> table{};  // the numbers of a parameter's options
    Known known = Known::real;    // … of a number or parameter
  };
  struct Function {
    std::string_view name;
    Code code;
    int arity;
  };
  struct Cursor {
    std::size_t at = 0, begin = 0;
    Token token = Token::end;
    std::string_view word;
    double number = 0;
    bool whole = false;  // the number is written without a fraction or an exponent
  };
  static constexpr std::size_t stack_size = 8 + 8 * static_cast<std::size_t>(max_depth);

  static double random(Code code, double low, double high, Rng& rng) {
    const double u = uniform01(rng);
    if (!(low <= high)) return std::numeric_limits<double>::quiet_NaN();
    if (code == Code::uniform) return low + u * (high - low);
    low = std::ceil(low), high = std::floor(high);
    return low > high ? std::numeric_limits<double>::quiet_NaN()
                      : std::min(high, low + std::floor(u * (high - low + 1)));
  }

  static double apply(Code code, double a, double b) {
    switch (code) {
      case Code::negate: return -a;
      case Code::add: return a + b;
      case Code::subtract: return a - b;
      case Code::multiply: return a * b;
      case Code::divide: return a / b;
      case Code::power: return std::pow(a, b);
      case Code::less: return a < b ? 1 : 0;
      case Code::less_equal: return a <= b ? 1 : 0;
      case Code::greater: return a > b ? 1 : 0;
      case Code::greater_equal: return a >= b ? 1 : 0;
      case Code::equal: return a == b ? 1 : 0;
      case Code::not_equal: return a < b || a > b ? 1 : 0;
      case Code::both: return a != 0 && b != 0 ? 1 : 0;
      case Code::either: return a != 0 || b != 0 ? 1 : 0;
      case Code::none: return a == 0 ? 1 : 0;
      case Code::abs: return std::fabs(a);
      case Code::exp: return std::exp(a);
      case Code::log: return std::log(a);
      case Code::log2: return std::log2(a);
      case Code::log10: return std::log10(a);
      case Code::sqrt: return std::sqrt(a);
      case Code::floor: return std::floor(a);
      case Code::ceil: return std::ceil(a);
      case Code::min: return std::fmin(a, b);
      case Code::max: return std::fmax(a, b);
      case Code::round: return std::round(a);
      case Code::number:
      case Code::parameter:
      case Code::uniform:
      case Code::integer: break;
    }
    return 0;
  }

  // --- tokens

  [[noreturn]] void stop(std::string_view wanted) const {
    const auto found =
        now_.token == Token::end
            ? std::string("its end")
            : fmt::format("'{}' (character {})", text_.substr(now_.begin, now_.at - now_.begin), now_.begin + 1);
    fail(Errc::input, "the {} '{}' is not understood at {}: {} is expected there", what_, text_, found, wanted);
  }

  [[noreturn]] void refuse_inexact(std::string_view number) const {
    fail(Errc::input, "the {} '{}' computes with {}, but not all whole numbers beyond ±2^53 can be computed with",
         what_, text_, number);
  }

  static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  static bool digit(char c) { return c >= '0' && c <= '9'; }

  void next() {
    while (now_.at < text_.size() && (text_[now_.at] == ' ' || text_[now_.at] == '\t' || text_[now_.at] == '\n'))
      ++now_.at;
    now_.begin = now_.at;
    if (now_.at == text_.size()) {
      now_.token = Token::end;
      now_.word = {};
      return;
    }
    const char c = text_[now_.at];
    if (digit(c) || (c == '.' && now_.at + 1 < text_.size() && digit(text_[now_.at + 1]))) {
      now_.token = Token::number;
      const auto [end, error] = std::from_chars(text_.data() + now_.at, text_.data() + text_.size(), now_.number);
      now_.at = error == std::errc() ? static_cast<std::size_t>(end - text_.data()) : now_.at + 1;
      if (error != std::errc() || (now_.at < text_.size() && letter(text_[now_.at]))) stop("a number");
      const std::string_view written = text_.substr(now_.begin, now_.at - now_.begin);
      now_.whole = written.find_first_not_of("0123456789") == std::string_view::npos;
      if (now_.whole && now_.number >= exact_limit && fmt::format("{:.0f}", now_.number) != written)
        refuse_inexact(written);
    } else if (letter(c)) {
      now_.token = Token::name;
      while (now_.at < text_.size() && (letter(text_[now_.at]) || digit(text_[now_.at]) || text_[now_.at] == '.'))
        ++now_.at;
      now_.word = text_.substr(now_.begin, now_.at - now_.begin);
    } else if (c == '"' || c == '\'' || c == '`') {
      now_.token = c == '`' ? Token::name : Token::text;
      const auto end = text_.find(c, now_.at + 1);
      now_.at = end == std::string_view::npos ? text_.size() : end + 1;
      if (end == std::string_view::npos) stop("a closing quote");
      now_.word = text_.substr(now_.begin + 1, end - now_.begin - 1);
    } else {
      now_.token = Token::symbol;
      now_.at += 1;
      for (const std::string_view two : {"<=", ">=", "==", "!=", "&&", "||", "**"})
        if (text_.substr(now_.begin, 2) == two) now_.at = now_.begin + 2;
      now_.word = text_.substr(now_.begin, now_.at - now_.begin);
    }
  }
  bool quoted_name() const { return text_[now_.begin] == '`'; }
  bool is(std::string_view symbol) const { return now_.token == Token::symbol && now_.word == symbol; }
  bool is_word(std::string_view word) const { return now_.token == Token::name && !quoted_name() && now_.word == word; }

  // --- the grammar

  struct Deeper {
    explicit Deeper(Expression& e) : expression(e) {
      if (++e.depth_ > max_depth) fail(Errc::input, "a constraint is nested more than {} deep: simplify it", max_depth);
    }
    ~Deeper() { --expression.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    Expression& expression;
  };

  void emit(Code code, int arity) { program_.push_back({code, arity}); }
  void want(Type found, Type wanted) const {
    if (found == wanted) return;
    fail(Errc::input, "the {} '{}' uses {} where {} is needed, before character {}", what_, text_,
         found == Type::truth ? "a comparison" : "a number", wanted == Type::truth ? "a comparison" : "a number",
         now_.begin + 1);
  }

  Type disjunction() {
    Type type = conjunction();
    while (is("||") || is_word("or")) {
      next();
      want(type, Type::truth);
      want(conjunction(), Type::truth);
      emit(Code::either, 2);
    }
    return type;
  }
  Type conjunction() {
    Type type = negation();
    while (is("&&") || is_word("and")) {
      next();
      want(type, Type::truth);
      want(negation(), Type::truth);
      emit(Code::both, 2);
    }
    return type;
  }
  Type negation() {
    if (!is("!") && !is_word("not")) return comparison();
    const Deeper deeper(*this);
    next();
    want(negation(), Type::truth);
    emit(Code::none, 1);
    return Type::truth;
  }
  const Function* comparator() const {
    static constexpr std::array<Function, 6> all{{{"<", Code::less, 2},
                                                  {"<=", Code::less_equal, 2},
                                                  {">", Code::greater, 2},
                                                  {">=", Code::greater_equal, 2},
                                                  {"==", Code::equal, 2},
                                                  {"!=", Code::not_equal, 2}}};
    for (const auto& one : all)
      if (is(one.name)) return &one;
    return nullptr;
  }
  Type comparison() {
    if (const auto option = option_comparison()) return *option;
    std::size_t start = program_.size();
    const Type type = sum();
    std::vector<Op> operand(program_.begin() + static_cast<std::ptrdiff_t>(start), program_.end());
    int links = 0;
    for (const Function* found = comparator(); found != nullptr; found = comparator(), ++links) {
      if (links == 0) want(type, Type::number);
      next();
      if (links > 0) program_.insert(program_.end(), operand.begin(), operand.end());  // a < b < c: a < b and b < c
      start = program_.size();
      want(sum(), Type::number);
      operand.assign(program_.begin() + static_cast<std::ptrdiff_t>(start), program_.end());
      emit(found->code, 2);
      if (links > 0) emit(Code::both, 2);
    }
    return links > 0 ? Type::truth : type;
  }
  Type sum() {
    Type type = product();
    while (is("+") || is("-")) {
      const Code code = is("+") ? Code::add : Code::subtract;
      next();
      want(type, Type::number);
      want(product(), Type::number);
      emit(code, 2);
    }
    return type;
  }
  Type product() {
    Type type = sign();
    while (is("*") || is("/")) {
      const Code code = is("*") ? Code::multiply : Code::divide;
      next();
      want(type, Type::number);
      want(sign(), Type::number);
      emit(code, 2);
    }
    return type;
  }
  Type sign() {
    if (!is("-") && !is("+")) return power();
    const Deeper deeper(*this);
    const bool minus = is("-");
    next();
    want(sign(), Type::number);
    if (minus) emit(Code::negate, 1);
    return Type::number;
  }
  Type power() {
    const Type type = primary();
    if (!is("^") && !is("**")) return type;
    const Deeper deeper(*this);
    next();
    want(type, Type::number);
    want(sign(), Type::number);
    emit(Code::power, 2);
    return Type::number;
  }
  Type primary() {
    const Deeper deeper(*this);
    if (now_.token == Token::number) {
      program_.push_back({Code::number, 0, now_.number});
      if (now_.whole) program_.back().known = Known::count;
      next();
      return Type::number;
    }
    if (is("(")) {
      next();
      const Type type = disjunction();
      if (!is(")")) stop("a closing parenthesis");
      next();
      return type;
    }
    if (now_.token != Token::name) stop("a number, a parameter or a parenthesis");
    const std::string_view word = now_.word;
    const bool plain = !quoted_name();
    if (plain && !model_->find(word)) {
      if (word == "true" || word == "false") {
        next();
        program_.push_back({Code::number, 0, word == "true" ? 1.0 : 0.0});
        return Type::truth;
      }
      if (const auto* found = function(word)) return call(*found);
    }
    return parameter(word);
  }
  static const Function* function(std::string_view name) {
    static constexpr std::array<Function, 13> all{{{"abs", Code::abs, 1},
                                                   {"exp", Code::exp, 1},
                                                   {"log", Code::log, 1},
                                                   {"log2", Code::log2, 1},
                                                   {"log10", Code::log10, 1},
                                                   {"sqrt", Code::sqrt, 1},
                                                   {"floor", Code::floor, 1},
                                                   {"ceil", Code::ceil, 1},
                                                   {"round", Code::round, 1},
                                                   {"uniform", Code::uniform, 2},
                                                   {"integer", Code::integer, 2},
                                                   {"min", Code::min, 2},
                                                   {"max", Code::max, 2}}};
    for (const auto& one : all)
      if (one.name == name) return &one;
    return nullptr;
  }
  Type call(const Function& f) {
    const bool random = f.code == Code::uniform || f.code == Code::integer;
    if (random && !of_)
      fail(Errc::input, "the {} '{}' draws a random number by {}(): only a derived parameter may", what_, text_,
           f.name);
    next();
    if (!is("(")) stop("an opening parenthesis");
    next();
    want(disjunction(), Type::number);
    for (int i = 1; i < f.arity || (f.arity == 2 && !random && is(",")); ++i) {
      if (!is(",")) stop("a comma");
      next();
      want(disjunction(), Type::number);
      emit(f.code, 2);
    }
    if (f.arity == 1) emit(f.code, 1);
    if (!is(")")) stop("a closing parenthesis");
    next();
    return Type::number;
  }

  std::size_t find(std::string_view name) const {
    const auto d = model_->find(name);
    if (d && of_ && *d >= *of_)
      fail(Errc::input, "the {} '{}' mentions '{}', which is not drawn before it: declare '{}' first", what_, text_,
           name, name);
    if (d) return *d;
    std::vector<std::string_view> names;
    for (const auto& dimension : model_->dimensions) names.emplace_back(dimension.name);
    fail(Errc::input, "the {} '{}' mentions '{}', which is no parameter{}", what_, text_, name,
         suggestion(name, names));
  }
  Type parameter(std::string_view name) {
    const std::size_t d = find(name);
    const auto& dimension = model_->dimensions[d];
    Op op{Code::parameter, 0, 0, d};
    if (dimension.has_options())
      op.known = Known::count;
    else if (dimension.type == ValueType::integer)
      op.known = dimension.info.lower >= 0 ? Known::count : Known::whole;
    bool truth = dimension.type == ValueType::boolean;
    for (const auto& option : dimension.options) {
      const auto* flag = std::get_if<bool>(&option);
      truth = flag != nullptr;
      op.table.push_back(truth ? (*flag ? 1.0 : 0.0) : number(option));
      if (std::isnan(op.table.back()))
        fail(Errc::input,
             "the {} '{}' uses '{}' as a number, but it can be '{}': compare it by == or != with one "
             "of its values",
             what_, text_, name, to_string(option));
      const auto* whole = std::get_if<std::int64_t>(&option);
      op.known = std::min(op.known, whole == nullptr ? Known::real : *whole < 0 ? Known::whole : Known::count);
      if (whole != nullptr && !converted_exactly<double>(*whole)) refuse_inexact(to_string(option));
    }
    next();
    mentioned_.push_back(d);
    program_.push_back(std::move(op));
    return truth ? Type::truth : Type::number;
  }

  /// `optimizer == "sgd"`, `use_bias != false`: compares a parameter of listed values with one of them.
  std::optional<Type> option_comparison() {
    if (now_.token != Token::name) return std::nullopt;
    const auto d = model_->find(now_.word);
    if (!d || model_->dimensions[*d].options.empty()) return std::nullopt;
    const auto& dimension = model_->dimensions[*d];
    const Cursor saved = now_;
    next();
    const bool equal = is("==");
    if (!equal && !is("!=")) return restore(saved);
    next();
    Value value;
    if (now_.token == Token::text || (now_.token == Token::name && !quoted_name() && !model_->find(now_.word)))
      value = std::string(now_.word);
    else
      return restore(saved);
    std::string why;
    double x = inactive;
    if (now_.token == Token::name && (now_.word == "true" || now_.word == "false"))
      x = find_coordinate(dimension, Value(now_.word == "true"), why);
    if (!is_active(x)) x = find_coordinate(dimension, value, why);
    if (!is_active(x))
      fail(Errc::input, "the {} '{}' compares '{}' with '{}', which it can never be: it must be {}", what_, text_,
           dimension.name, now_.word, why);
    next();
    mentioned_.push_back(*d);
    program_.push_back({Code::parameter, 0, 0, *d});
    program_.push_back({Code::number, 0, x});
    emit(equal ? Code::equal : Code::not_equal, 2);
    return Type::truth;
  }
  std::optional<Type> restore(const Cursor& saved) {
    now_ = saved;
    return std::nullopt;
  }

  std::string_view text_;
  const SpaceModel* model_;
  std::string_view what_ = "constraint";
  std::optional<std::size_t> of_;  // the dimension that the expression computes
  Cursor now_;
  int depth_ = 0;

  std::vector<Op> program_;
  std::vector<std::size_t> mentioned_;
  bool whole_ = false;
};

}  // namespace hypertune::inline v0::detail
