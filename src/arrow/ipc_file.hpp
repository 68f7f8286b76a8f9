// Arrow's IPC file format: columns of simple types, written in batches of rows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail::arrow {

enum class Type : std::uint8_t { boolean, int32, int64, float64, text, timestamp };

/// The rows of one column in the current batch. Each call of an append…() adds one row.
class Column {
 public:
  Column(std::string name, Type type) : name_(std::move(name)), type_(type) {}

  void append_null();
  void append(bool flag);
  void append(std::int64_t number);  ///< for int32 and int64; for timestamp, microseconds since 1970
  void append(double number);
  void append(std::string_view text);  ///< invalid UTF-8 is replaced by U+FFFD

  const std::string& name() const { return name_; }
  Type type() const { return type_; }

 private:
  friend class IpcFile;
  void count(bool valid);
  void put_bit(std::string& bits, bool bit) const;
  template <class T>
  void put(T value);
  void clear();

  std::string name_;
  Type type_;
  std::int64_t rows_ = 0, nulls_ = 0;
  std::string validity_, values_;
  std::vector<std::int32_t> offsets_{0};  // where each text begins in values_
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// Writes one file, which is a valid Arrow file only after finish(). Errors are of kind `io`.
class IpcFile {
 public:
  IpcFile(std::filesystem::path path, const std::vector<Column>& columns, Metadata metadata);
  /// Writes the rows of the columns, which must have equally many, and clears them.
  void write(std::vector<Column>& columns);
  void finish(const std::vector<Column>& columns);

 private:
  struct Block {  // as in the file's footer
    std::int64_t offset;
    std::int32_t metadata;
    std::int32_t padding;
    std::int64_t body;
  };
  void put(std::string_view bytes);
  Block message(std::string_view metadata);

  std::filesystem::path path_;
  Metadata metadata_;
  std::ofstream out_;
  std::int64_t at_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace hypertune::inline v0::detail::arrow
