// Secret: a token for checkpoint transfers.
#include "private_file.hpp"

#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/detail/hex.hpp>
#include <hypertune/error.hpp>
#include <hypertune/net/secret.hpp>

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <cerrno>
#include <utility>

namespace hypertune::inline v0 {

namespace {

constexpr std::size_t min_size = 16, max_size = 1024;

void wipe(std::string& text) {
  OPENSSL_cleanse(text.data(), text.size());
  text.clear();
}

Secret first_line(std::string text, const char* from) {
  if (const auto end = text.find('\n'); end != std::string::npos) text.resize(end);
  if (!text.empty() && text.back() == '\r') text.pop_back();
  try {
    Secret secret(text);
    wipe(text);
    return secret;
  } catch (const Error& e) {
    wipe(text);
    fail(e.code(), "{}: {}", from, e.what());
  }
}

}  // namespace

Secret::Secret(std::string text) : text_(std::move(text)) {
  bool sound = text_.size() >= min_size && text_.size() <= max_size;
  for (const char c : text_) sound = sound && c > ' ' && c < 0x7F;
  if (sound) return;
  wipe(text_);  // the destructor does not run if the constructor throws
  fail(Errc::usage, "a token must have {} to {} visible ASCII characters without spaces", min_size, max_size);
}

Secret& Secret::operator=(const Secret& other) {
  if (this == &other) return *this;
  wipe(text_);
  text_ = other.text_;
  return *this;
}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this == &other) return *this;
  wipe(text_);
  text_ = std::move(other.text_);
  wipe(other.text_);  // moving a short string copies it
  return *this;
}

Secret::~Secret() { wipe(text_); }

Secret Secret::generate() {
  unsigned char bytes[32];
  if (RAND_bytes(bytes, sizeof bytes) != 1) fail(Errc::io, "the system's random generator gives nothing");
  std::string text = detail::to_hex(bytes);
  OPENSSL_cleanse(bytes, sizeof bytes);
  return Secret(std::move(text));
}

Secret Secret::from_file(const std::filesystem::path& path) {
  return first_line(detail::read_private_file(path, max_size + 2), path.c_str());
}

Secret Secret::from_descriptor(int descriptor) {
  std::string text;
  char c = 0;
  // Read byte by byte, because the data after the line is for another reader.
  while (text.size() <= max_size + 1 && text.find('\n') == std::string::npos) {
    const ssize_t n = detail::read_some(descriptor, &c, 1);
    if (n < 0) fail(Errc::io, "cannot read the token from descriptor {}: {}", descriptor, detail::error_text(errno));
    if (n == 0) break;
    text += c;
  }
  return first_line(std::move(text), "the token's descriptor");
}

void Secret::write_file(const std::filesystem::path& path) const { detail::write_private_file(path, text_ + '\n'); }

bool Secret::matches(std::string_view other) const {
  // Compares hashes, which have equal lengths, so that the time does not depend on the length or content either.
  unsigned char mine[SHA256_DIGEST_LENGTH], theirs[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text_.data()), text_.size(), mine);
  SHA256(reinterpret_cast<const unsigned char*>(other.data()), other.size(), theirs);
  return CRYPTO_memcmp(mine, theirs, sizeof mine) == 0;
}

}  // namespace hypertune::inline v0
