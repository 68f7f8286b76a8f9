// Builds nodes with file positions from yaml-cpp's events.
#pragma once

#include <hypertune/config/yaml.hpp>
#include <hypertune/detail/utf8.hpp>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {
namespace detail {

/// Builds the tree. An alias shares its anchor's value, so that it costs no memory; its expanded size is counted.
class YamlBuilder final : public YAML::EventHandler {
 public:
  static constexpr std::size_t max_depth = 64;
  static constexpr std::size_t max_values = 100'000;

  YamlBuilder(std::string file, int first_line) : file_(std::move(file)), first_line_(first_line) {}

  std::shared_ptr<const YamlData> root;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(make(YamlKind::null, mark), anchor, mark, 1);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      stop(mark, "an alias is used inside the value that it stands for: write the value out");
    add(found->second.data, 0, mark, found->second.values);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (tag != "?" && tag != "!" && !tag.empty() && tag != "tag:yaml.org,2002:str")
      stop(mark, fmt::format("the tag '{}' has no meaning here: remove it", tag));
    auto data = make(YamlKind::scalar, mark);
    data->text = text;
    data->plain = tag == "?" || tag.empty();
    if (data->plain && (text == "~" || text == "null" || text == "Null" || text == "NULL")) data->kind = YamlKind::null;
    add(std::move(data), anchor, mark, 1);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlKind::list, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlKind::map, mark, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    std::shared_ptr<YamlData> data;
    YAML::anchor_t anchor;
    YAML::Mark mark;
    std::size_t values = 1;  // with aliases expanded
    bool key_next = false;   // in a map: the next scalar is a key
    std::set<std::string> seen;
  };
  struct Anchored {
    std::shared_ptr<const YamlData> data;
    std::size_t values;
  };

  [[noreturn]] void stop(const YAML::Mark& mark, const std::string& what) const {
    fail(Errc::input, "{}:{}: {}", file_, mark.line + first_line_, what);
  }
  std::shared_ptr<YamlData> make(YamlKind kind, const YAML::Mark& mark) const {
    auto data = std::make_shared<YamlData>();
    data->kind = kind;
    data->line = std::max(mark.line, 0) + first_line_;
    return data;
  }
  void open(YamlKind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (levels_.size() >= max_depth)
      stop(mark, fmt::format("lists and maps are nested more than {} deep: flatten them", max_depth));
    if (!levels_.empty() && levels_.back().key_next) stop(mark, "a key must be a plain text, not a list or map");
    levels_.push_back({make(kind, mark), anchor, mark, 1, kind == YamlKind::map, {}});
  }
  void close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    add(std::move(level.data), level.anchor, level.mark, level.values);
  }
  void add(std::shared_ptr<const YamlData> data, YAML::anchor_t anchor, const YAML::Mark& mark, std::size_t values) {
    if (anchor != 0) anchors_[anchor] = {data, values};
    if (levels_.empty()) {
      root = std::move(data);
      return;
    }
    Level& level = levels_.back();
    level.values += values;
    if (level.values > max_values)
      stop(mark, fmt::format("there are more than {} values, aliases expanded: this is no configuration", max_values));
    if (level.key_next) {
      if (data->kind != YamlKind::scalar) stop(mark, "a key must be a plain text");
      if (!level.seen.insert(data->text).second)
        stop(mark, fmt::format("the key '{}' is given twice: remove one of the two", data->text));
      level.data->keys.emplace_back(data->text, mark.line + first_line_);
      level.key_next = false;
      return;
    }
    level.data->items.push_back(std::move(data));
    level.key_next = level.data->kind == YamlKind::map;
  }

  std::string file_;
  int first_line_;
  std::vector<Level> levels_;
  std::map<YAML::anchor_t, Anchored> anchors_;
};

/// yaml-cpp takes byte 4 for the end of the text and does not reject malformed UTF-8, so both are refused here.
inline void check_bytes(std::string_view text, const std::string& name, int line) {
  while (!text.empty()) {
    const auto [bytes, code, valid] = decode_utf8(text);
    if (!valid)
      fail(Errc::input, "{}:{}: byte 0x{:02x} is not UTF-8: save the file as UTF-8", name, line,
           static_cast<unsigned char>(text.front()));
    text.remove_prefix(bytes);
    if (code == '\n') ++line;
    if ((code < 0x20 && code != '\n' && code != '\r' && code != '\t') || code == 0x7f)
      fail(Errc::input, "{}:{}: there is a control character (0x{:02x}): remove it, or write it as an escape in quotes",
           name, line, static_cast<unsigned>(code));
  }
}

}  // namespace detail

inline Node load_yaml_text(std::string_view text, std::string name, int first_line) {
  constexpr std::size_t max_bytes = 1 << 20;
  if (text.size() > max_bytes)
    fail(Errc::input, "{}:{}: larger than 1 MiB: this is no configuration", name, first_line);
  detail::check_bytes(text, name, first_line);
  detail::YamlBuilder builder(name, first_line);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder) || !builder.root) builder.OnNull(YAML::Mark(), 0);
    auto first = builder.root;
    if (parser.HandleNextDocument(builder))
      fail(Errc::input, "{}:{}: a second document begins here: keep one to a file", name, builder.root->line);
    builder.root = std::move(first);
  } catch (const Error&) { throw; } catch (const YAML::Exception& error) {
    fail(Errc::input, "{}:{}: not YAML: {}", name, std::max(error.mark.line, 0) + first_line, error.msg);
  } catch (const std::bad_alloc&) { throw; } catch (const std::exception& error) {
    fail(Errc::input, "{}:{}: not YAML: {}", name, first_line, error.what());
  }
  return Node(std::move(builder.root), std::make_shared<const std::string>(std::move(name)), "");
}

inline Node load_yaml_file(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    fail(Errc::input, "{}: is a directory, not a YAML file", file.string());
  std::ifstream stream(file, std::ios::binary);
  if (!stream) fail(Errc::input, "{}: cannot be read: check the path and its permissions", file.string());
  std::string text(1 << 20, '\0');
  text.resize(text.size() + 1);  // one byte more than is allowed
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) fail(Errc::input, "{}: reading it failed", file.string());
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return load_yaml_text(text, file.string());
}

}  // namespace hypertune::inline v0
