// The page's files, embedded in the program.
#pragma once

#include <string_view>

namespace hypertune::inline v0::dashboard {

struct PageFile {
  std::string_view path;  ///< "/index.html", as in requests
  std::string_view type;  ///< its Content-Type
  std::string_view gzip;  ///< its content, compressed by gzip
};

/// nullptr: there is no such file. "/" is "/index.html".
const PageFile* find_page_file(std::string_view path);

}  // namespace hypertune::inline v0::dashboard
