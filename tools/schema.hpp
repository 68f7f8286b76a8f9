// Generates JSON Schemas of the YAML files.
#pragma once

#include <string>

namespace hypertune::inline v0::command {

/// The JSON Schema (2020-12) of a `sweep`, `cluster` or `study`, from the tables of their readers.
std::string schema_of(const std::string& kind);

}  // namespace hypertune::inline v0::command
