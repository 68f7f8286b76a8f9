// TensorBoard's event files: the five protobuf messages that scalars and hyperparameters need, and their framing.
#pragma once

#include <hypertune/space/params.hpp>

#include <boost/crc.hpp>

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace hypertune::inline v0::detail::tensorboard {

// The messages are few, flat and frozen, so they are written field by field here, rather than by code that protoc
// would have to generate in every user's build. Field numbers: tensorboard/compat/proto/{event,summary,tensor}.proto
// and tensorboard/plugins/hparams/plugin_data.proto.

inline void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>(value | 0x80U);
  out += static_cast<char>(value);
}
template <std::unsigned_integral Bits>
void put_fixed(std::string& out, Bits bits) {
  for (std::size_t i = 0; i < sizeof bits; ++i) out += static_cast<char>(bits >> (8 * i));
}
inline void put_number(std::string& out, unsigned field, std::uint64_t value) {
  put_varint(out, field << 3U);
  put_varint(out, value);
}
inline void put_double(std::string& out, unsigned field, double value) {
  put_varint(out, field << 3U | 1U);
  put_fixed(out, std::bit_cast<std::uint64_t>(value));
}
inline void put_float(std::string& out, unsigned field, float value) {
  put_varint(out, field << 3U | 5U);
  put_fixed(out, std::bit_cast<std::uint32_t>(value));
}
inline void put_bytes(std::string& out, unsigned field, std::string_view bytes) {
  put_varint(out, field << 3U | 2U);
  put_varint(out, bytes.size());
  out += bytes;
}

/// TFRecord's checksum: CRC-32C, rotated and offset, because a CRC of data that contains CRCs is weak.
inline std::uint32_t masked_crc(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return std::rotr(static_cast<std::uint32_t>(crc.checksum()), 15) + 0xA282EAD8U;
}

/// Appends `message` as a TFRecord: length, checksum of the length, message, checksum of the message.
inline void put_record(std::string& out, std::string_view message) {
  std::string length;
  put_fixed(length, static_cast<std::uint64_t>(message.size()));
  out += length;
  put_fixed(out, masked_crc(length));
  out += message;
  put_fixed(out, masked_crc(message));
}

/// Removes the first TFRecord from `bytes`; nullopt if it is incomplete or damaged.
inline std::optional<std::string_view> take_record(std::string_view& bytes) {
  const auto fixed = [&](std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
    return value;
  };
  if (bytes.size() < 16 || masked_crc(bytes.substr(0, 8)) != fixed(8, 4)) return std::nullopt;
  const std::uint64_t length = fixed(0, 8);
  if (length > bytes.size() - 16 || masked_crc(bytes.substr(12, length)) != fixed(12 + length, 4)) return std::nullopt;
  const std::string_view message = bytes.substr(12, length);
  bytes.remove_prefix(16 + length);
  return message;
}

/// The beginning of an Event, without its content: wall_time = 1, step = 2.
inline std::string event(double time, std::int64_t step) {
  std::string out;
  put_double(out, 1, time);
  if (step != 0) put_number(out, 2, static_cast<std::uint64_t>(step));
  return out;
}

/// The step of an Event that was written by event().
inline std::int64_t event_step(std::string_view message) {
  constexpr std::size_t after_time = 9;
  if (message.size() <= after_time || message[after_time] != 0x10) return 0;
  std::uint64_t step = 0;
  unsigned shift = 0;
  for (std::size_t i = after_time + 1; i < message.size() && shift < 64; ++i, shift += 7) {
    step |= static_cast<std::uint64_t>(message[i] & 0x7F) << shift;
    if ((static_cast<unsigned char>(message[i]) & 0x80U) == 0) break;
  }
  return static_cast<std::int64_t>(step);
}

/// The record that every event file starts with: file_version = 3.
inline std::string version_record(double time) {
  std::string message = event(time, 0), out;
  put_bytes(message, 3, "brain.Event:2");
  put_record(out, message);
  return out;
}

/// Adds a scalar to a Summary (value = 1: tag = 1, simple_value = 2). TensorBoard keeps 32 bits of it.
inline void put_scalar(std::string& summary, std::string_view tag, double value) {
  std::string out;
  put_bytes(out, 1, tag);
  put_float(out, 2, static_cast<float>(value));
  put_bytes(summary, 1, out);
}

/// A Summary that carries only metadata of the HPARAMS tab: tag = 1, tensor = 8 (an empty one of floats), metadata = 9.
inline std::string hparams_summary(std::string_view tag, std::string_view plugin_data) {
  std::string plugin, metadata, dimension, shape, tensor, value, summary;
  put_bytes(plugin, 1, "hparams");
  put_bytes(plugin, 2, plugin_data);
  put_bytes(metadata, 1, plugin);
  put_bytes(shape, 2, dimension);
  put_number(tensor, 1, 1);
  put_bytes(tensor, 2, shape);
  put_bytes(value, 1, tag);
  put_bytes(value, 8, tensor);
  put_bytes(value, 9, metadata);
  put_bytes(summary, 1, value);
  return summary;
}

inline constexpr std::string_view session_start_tag = "_hparams_/session_start_info";
inline constexpr std::string_view session_end_tag = "_hparams_/session_end_info";

/// HParamsPluginData.session_start_info = 3: hparams = 1 (a map of google.protobuf.Value), group_name = 4, start = 5.
inline std::string session_start(const Params& params, std::string_view group, double time) {
  std::string info, data;
  for (const auto& [name, value] : params) {
    std::string json, entry;
    if (const auto* flag = std::get_if<bool>(&value))
      put_number(json, 4, *flag ? 1 : 0);
    else if (const auto* text = std::get_if<std::string>(&value))
      put_bytes(json, 3, *text);
    else if (const auto* integer = std::get_if<std::int64_t>(&value))
      converted_exactly<double>(*integer) ? put_double(json, 2, static_cast<double>(*integer))
                                          : put_bytes(json, 3, to_string(value));
    else
      put_double(json, 2, std::get<double>(value));
    put_bytes(entry, 1, name);
    put_bytes(entry, 2, json);
    put_bytes(info, 1, entry);
  }
  put_bytes(info, 4, group);
  put_double(info, 5, time);
  put_bytes(data, 3, info);
  return hparams_summary(session_start_tag, data);
}

enum class Status : std::uint8_t { success = 1, failure = 2 };

/// HParamsPluginData.session_end_info = 4: status = 1, end = 2.
inline std::string session_end(Status status, double time) {
  std::string info, data;
  put_number(info, 1, static_cast<std::uint64_t>(status));
  put_double(info, 2, time);
  put_bytes(data, 4, info);
  return hparams_summary(session_end_tag, data);
}

/// Appends a record with an Event whose summary (= 5) is given.
inline void put_summary_record(std::string& out, double time, std::int64_t step, std::string_view summary) {
  std::string message = event(time, step);
  put_bytes(message, 5, summary);
  put_record(out, message);
}

}  // namespace hypertune::inline v0::detail::tensorboard
