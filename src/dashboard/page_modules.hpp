// The page's modules as one script, for a document that has no server to ask for them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::dashboard {

/// The module `path` ("/main.js") and all that it imports, each as a function that is called once, in the order in
/// which they need each other. A classic script: browsers load modules from no file, and from no address within the
/// document under its Content-Security-Policy. Error of kind `input` for what is no module as the page's are: an import
/// is one line of names in braces from a relative path, an export stands before what it exports, nothing is imported in
/// a circle, and nothing in it ends a <script>.
std::string joined_modules(const std::string& path, const std::function<std::string(std::string_view)>& text_of);

}  // namespace hypertune::inline v0::dashboard
