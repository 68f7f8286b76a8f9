// What any client may send to the HTTP servers of the page and of `hypertune study`: heads, bodies and trailers, in any
// pieces. The same requests are read however they are cut; nothing throws. (What is wrong with one that is none may be
// found later in small pieces, and another fault first.)
//
// The first byte chooses the limits, the second one the pieces. 0xFF, a byte and a number n: 512 n times that byte, so
// that a short input reaches every limit.
#include <hypertune/net/browser_rules.hpp>
#include <hypertune/net/request_reader.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

using namespace hypertune;
using hypertune::detail::RequestReader;

namespace {

/// The bodies of the requests in `text`.
std::vector<std::string> read_all(std::string_view text, std::size_t head, std::uint64_t body, std::size_t piece) {
  static const ServerNames names;
  RequestReader reader(head, body);
  std::vector<std::string> all;
  for (;;) {
    auto end = reader.parse();
    while (!end && !text.empty()) {
      const auto room = reader.prepare();
      const std::size_t n = std::min({room.size(), piece, text.size()});
      if (n == 0) std::abort();  // it asks for more, and has no room
      std::copy_n(text.begin(), n, static_cast<char*>(room.data()));
      reader.commit(n);
      text.remove_prefix(n);
      end = reader.parse();
    }
    if (!end || *end) return all;
    const auto& request = reader.request();
    static_cast<void>(hypertune::detail::refused_origin(request, names));
    if (request.body().size() > body || request.target().size() > head) std::abort();
    all.push_back(request.body());
    reader.begin();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  constexpr std::size_t heads[] = {8192, 49152, 300, 1 << 20};
  constexpr std::uint64_t bodies[] = {0, 1 << 20, 100};
  const std::size_t head = heads[data[0] % 4], piece = std::size_t{1} + data[1] * std::size_t{17};
  const std::uint64_t body = bodies[data[0] / 4 % 3];
  std::string text;
  for (std::size_t i = 2; i < size; ++i) {
    if (data[i] == 0xFF && i + 2 < size) {
      text.append(std::size_t{512} * data[i + 2], static_cast<char>(data[i + 1]));
      i += 2;
    } else {
      text += static_cast<char>(data[i]);
    }
    if (text.size() > (std::size_t{1} << 20U)) break;
  }
  if (read_all(text, head, body, std::size_t{1} << 20U) != read_all(text, head, body, piece)) std::abort();
  return 0;
}
