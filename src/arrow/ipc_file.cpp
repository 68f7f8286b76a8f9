// The messages are FlatBuffers. Their tables are written by field number, following Arrow's "Columnar Format" document
// and its Schema.fbs, Message.fbs and File.fbs: so few tables are needed that no schema compiler is.
#include "ipc_file.hpp"

#include <hypertune/detail/utf8.hpp>
#include <hypertune/error.hpp>

#include <flatbuffers/flatbuffers.h>

#include <bit>
#include <cstddef>

namespace hypertune::inline v0::detail::arrow {

static_assert(std::endian::native == std::endian::little, "columns are written as they lie in memory");

namespace {

namespace fb = flatbuffers;
using Builder = fb::FlatBufferBuilder;
template <class T>
using Vector = fb::Offset<fb::Vector<T>>;
using Table = fb::Offset<void>;

// Constants of the format.
constexpr std::int16_t version_5 = 4;
enum class Header : std::uint8_t { schema = 1, record_batch = 3 };
enum class Word : std::uint8_t { integer = 2, floating_point = 3, utf8 = 5, boolean = 6, timestamp = 10 };
constexpr std::int16_t double_precision = 2, microseconds = 2;

constexpr std::string_view magic = "ARROW1";
constexpr std::size_t alignment = 8;  // of messages and buffers, in bytes
constexpr std::size_t padding(std::size_t size) { return (alignment - size % alignment) % alignment; }

struct Buffer {
  std::int64_t offset, length;
};
struct FieldNode {
  std::int64_t length, nulls;
};

// Makes a table; `add` adds its fields by their numbers.
template <class Add>
Table table(Builder& to, const Add& add) {
  const auto start = to.StartTable();
  add();
  return {to.EndTable(start)};
}
template <class T>
void scalar(Builder& to, int field, T value) {
  to.AddElement<T>(fb::FieldIndexToOffset(static_cast<fb::voffset_t>(field)), value, T{});
}
template <class T>
void reference(Builder& to, int field, fb::Offset<T> value) {
  to.AddOffset(fb::FieldIndexToOffset(static_cast<fb::voffset_t>(field)), value);
}

Table type_table(Builder& to, Type type) {
  switch (type) {
    case Type::int32:
    case Type::int64:
      return table(to, [&] {
        scalar<std::int32_t>(to, 0, type == Type::int32 ? 32 : 64);
        scalar<std::uint8_t>(to, 1, 1);  // signed
      });
    case Type::float64: return table(to, [&] { scalar(to, 0, double_precision); });
    case Type::timestamp: {
      const auto zone = to.CreateString("UTC");
      return table(to, [&] {
        scalar(to, 0, microseconds);
        reference(to, 1, zone);
      });
    }
    case Type::boolean:
    case Type::text: break;
  }
  return table(to, [] {});
}
Word word_of(Type type) {
  switch (type) {
    case Type::int32:
    case Type::int64: return Word::integer;
    case Type::float64: return Word::floating_point;
    case Type::timestamp: return Word::timestamp;
    case Type::boolean: return Word::boolean;
    case Type::text: break;
  }
  return Word::utf8;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto character = decode_utf8(text);
    character.valid ? static_cast<void>(out += text.substr(0, character.bytes)) : append_utf8(out, character.code);
    text.remove_prefix(character.bytes);
  }
  return out;
}

Table field_table(Builder& to, const Column& column) {
  const auto name = to.CreateString(valid_utf8(column.name()));
  const Table type = type_table(to, column.type());
  const Vector<Table> children = to.CreateVector(std::vector<Table>());
  return table(to, [&] {
    reference(to, 0, name);
    scalar<std::uint8_t>(to, 1, 1);  // nullable
    scalar(to, 2, static_cast<std::uint8_t>(word_of(column.type())));
    reference(to, 3, type);
    reference(to, 5, children);
  });
}

Table schema_table(Builder& to, const std::vector<Column>& columns, const Metadata& metadata) {
  std::vector<Table> fields, pairs;
  for (const auto& column : columns) fields.push_back(field_table(to, column));
  for (const auto& [key, value] : metadata) {
    const auto name = to.CreateString(valid_utf8(key)), text = to.CreateString(valid_utf8(value));
    pairs.push_back(table(to, [&] {
      reference(to, 0, name);
      reference(to, 1, text);
    }));
  }
  const auto all = to.CreateVector(fields), custom = to.CreateVector(pairs);
  return table(to, [&] {
    reference(to, 1, all);
    reference(to, 2, custom);
  });
}

void finish_message(Builder& to, Header kind, Table header, std::int64_t body) {
  to.Finish(table(to, [&] {
    scalar(to, 3, body);
    reference(to, 2, header);
    scalar(to, 0, version_5);
    scalar(to, 1, static_cast<std::uint8_t>(kind));
  }));
}

std::string_view bytes_of(const Builder& builder) {
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

std::string_view little_endian(const std::int32_t& number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

}  // namespace

void Column::put_bit(std::string& bits, bool bit) const {
  const auto place = static_cast<std::size_t>(rows_);
  if (place % 8 == 0) bits += '\0';
  if (bit) bits.back() = static_cast<char>(static_cast<unsigned char>(bits.back()) | 1U << place % 8);
}
void Column::count(bool valid) {
  put_bit(validity_, valid);
  nulls_ += valid ? 0 : 1;
  ++rows_;
}
template <class T>
void Column::put(T value) {
  values_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void Column::append_null() {
  switch (type_) {
    case Type::boolean: put_bit(values_, false); break;
    case Type::int32: put(std::int32_t{0}); break;
    case Type::int64:
    case Type::timestamp: put(std::int64_t{0}); break;
    case Type::float64: put(0.0); break;
    case Type::text: offsets_.push_back(offsets_.back()); break;
  }
  count(false);
}
void Column::append(bool flag) {
  put_bit(values_, flag);
  count(true);
}
void Column::append(std::int64_t number) {
  type_ == Type::int32 ? put(static_cast<std::int32_t>(number)) : put(number);
  count(true);
}
void Column::append(double number) {
  put(number);
  count(true);
}
void Column::append(std::string_view text) {
  values_ += valid_utf8(text);
  offsets_.push_back(static_cast<std::int32_t>(values_.size()));
  count(true);
}
void Column::clear() {
  rows_ = nulls_ = 0;
  validity_.clear();
  values_.clear();
  offsets_.assign(1, 0);
}

IpcFile::IpcFile(std::filesystem::path path, const std::vector<Column>& columns, Metadata metadata)
    : path_(std::move(path)), metadata_(std::move(metadata)), out_(path_, std::ios::binary | std::ios::trunc) {
  if (!out_) fail(Errc::io, "cannot write '{}'", path_.string());
  put(std::string(magic) + std::string(padding(magic.size()), '\0'));
  Builder builder;
  finish_message(builder, Header::schema, schema_table(builder, columns, metadata_), 0);
  message(bytes_of(builder));
}

void IpcFile::put(std::string_view bytes) {
  if (!out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size())))
    fail(Errc::io, "cannot write '{}': is the disk full?", path_.string());
  at_ += static_cast<std::int64_t>(bytes.size());
}

IpcFile::Block IpcFile::message(std::string_view metadata) {
  const std::int64_t begin = at_;
  constexpr std::int32_t continuation = -1;
  const auto size = static_cast<std::int32_t>(metadata.size() + padding(metadata.size()));
  put(little_endian(continuation));
  put(little_endian(size));
  put(metadata);
  put(std::string(padding(metadata.size()), '\0'));
  return {begin, static_cast<std::int32_t>(at_ - begin), 0, 0};
}

void IpcFile::write(std::vector<Column>& columns) {
  std::vector<FieldNode> nodes;
  std::vector<Buffer> places;
  std::vector<std::string_view> buffers;
  std::int64_t body = 0;
  const auto add = [&](std::string_view bytes) {
    places.push_back({body, static_cast<std::int64_t>(bytes.size())});
    buffers.push_back(bytes);
    body += static_cast<std::int64_t>(bytes.size() + padding(bytes.size()));
  };
  for (const auto& column : columns) {
    nodes.push_back({column.rows_, column.nulls_});
    add(column.nulls_ > 0 ? std::string_view(column.validity_) : std::string_view());
    if (column.type_ == Type::text)
      add({reinterpret_cast<const char*>(column.offsets_.data()), column.offsets_.size() * sizeof(std::int32_t)});
    add(column.values_);
  }
  Builder builder;
  const auto node_vector = builder.CreateVectorOfStructs(nodes.data(), nodes.size());
  const auto buffer_vector = builder.CreateVectorOfStructs(places.data(), places.size());
  const Table batch = table(builder, [&] {
    scalar(builder, 0, columns.empty() ? std::int64_t{0} : columns.front().rows_);
    reference(builder, 1, node_vector);
    reference(builder, 2, buffer_vector);
  });
  finish_message(builder, Header::record_batch, batch, body);
  Block block = message(bytes_of(builder));
  block.body = body;
  for (const std::string_view bytes : buffers) {
    put(bytes);
    put(std::string(padding(bytes.size()), '\0'));
  }
  blocks_.push_back(block);
  for (auto& column : columns) column.clear();
}

void IpcFile::finish(const std::vector<Column>& columns) {
  constexpr std::int32_t continuation = -1, end = 0;
  put(little_endian(continuation));
  put(little_endian(end));
  Builder builder;
  const Table schema = schema_table(builder, columns, metadata_);
  const auto none = builder.CreateVectorOfStructs(blocks_.data(), 0);
  const auto batches = builder.CreateVectorOfStructs(blocks_.data(), blocks_.size());
  builder.Finish(table(builder, [&] {
    reference(builder, 1, schema);
    reference(builder, 2, none);
    reference(builder, 3, batches);
    scalar(builder, 0, version_5);
  }));
  const auto footer = bytes_of(builder);
  put(footer);
  put(little_endian(static_cast<std::int32_t>(footer.size())));
  put(magic);
  if (!out_.flush()) fail(Errc::io, "cannot write '{}': is the disk full?", path_.string());
  out_.close();
}

}  // namespace hypertune::inline v0::detail::arrow
