// Joins the page's modules into one script, for a document that has no server to load them from.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::dashboard {

/// The module `path` ("/main.js") and everything that it imports, each as a function that is called once, in the order
/// of their dependencies. The result is a classic script: browsers load no modules from files, nor from addresses
/// within the document under its Content-Security-Policy. Error of kind `input` for a module outside of the supported
/// subset: an import is one line of names in braces from a relative path, an export precedes its declaration, imports
/// have no cycles, and nothing in it ends a <script>.
std::string joined_modules(const std::string& path, const std::function<std::string(std::string_view)>& text_of);

}  // namespace hypertune::inline v0::dashboard
