#include "gzip.hpp"

#include <hypertune/error.hpp>

#include <boost/beast/zlib/deflate_stream.hpp>
#include <boost/beast/zlib/inflate_stream.hpp>
#include <boost/crc.hpp>

#include <algorithm>
#include <cstdint>

namespace hypertune::inline v0::dashboard {

namespace zlib = boost::beast::zlib;

namespace {

constexpr std::size_t head_size = 10, tail_size = 8;

void put_number(std::string& out, std::uint32_t number) {
  for (unsigned shift = 0; shift < 32; shift += 8) out += static_cast<char>(number >> shift);
}

std::uint32_t sum_of(std::string_view text) {
  boost::crc_32_type sum;
  sum.process_bytes(text.data(), text.size());
  return sum.checksum();
}

}  // namespace

std::string gzipped(std::string_view text) {
  std::string out("\x1f\x8b\x08\0\0\0\0\0\0\xff", head_size);
  zlib::deflate_stream stream;
  stream.reset(5, 15, 8, zlib::Strategy::normal);
  out.resize(head_size + stream.upper_bound(text.size()) + 64);
  zlib::z_params params;
  params.next_in = text.data();
  params.avail_in = text.size();
  params.next_out = out.data() + head_size;
  params.avail_out = out.size() - head_size;
  boost::system::error_code error;
  stream.write(params, zlib::Flush::finish, error);
  if (error && error != zlib::error::end_of_stream)
    fail(Errc::io, "an answer cannot be compressed: {}", error.message());
  out.resize(head_size + params.total_out);
  put_number(out, sum_of(text));
  put_number(out, static_cast<std::uint32_t>(text.size()));
  return out;
}

std::optional<std::string> gunzipped(std::string_view bytes, std::size_t most) {
  if (bytes.size() < head_size + tail_size || !bytes.starts_with("\x1f\x8b\x08") || bytes[3] != '\0')
    return std::nullopt;
  const std::string_view tail = bytes.substr(bytes.size() - tail_size);
  bytes = bytes.substr(head_size, bytes.size() - head_size - tail_size);
  zlib::inflate_stream stream;
  zlib::z_params params;
  params.next_in = bytes.data();
  params.avail_in = bytes.size();
  std::string out;
  for (;;) {
    const std::size_t before = out.size();
    if (before > most) return std::nullopt;
    out.resize(before + std::max<std::size_t>(bytes.size() * 2, 4096));
    params.next_out = out.data() + before;
    params.avail_out = out.size() - before;
    boost::system::error_code error;
    stream.write(params, zlib::Flush::sync, error);
    const std::size_t left = params.avail_out;
    out.resize(out.size() - left);
    if (error && error != zlib::error::need_buffers && error != zlib::error::end_of_stream) return std::nullopt;
    // For short data the end may not be reported as such; the checksum tells whether it is complete.
    if (error == zlib::error::end_of_stream || (left > 0 && params.avail_in == 0)) break;
  }
  std::string sum;
  put_number(sum, sum_of(out));
  put_number(sum, static_cast<std::uint32_t>(out.size()));
  if (sum != tail || out.size() > most) return std::nullopt;
  return out;
}

}  // namespace hypertune::inline v0::dashboard
