// Builds a Normalizer from the "normalizer" of a tokenizer.json.
#pragma once

#include "io/json_file.h"
#include "token/normalizer.h"

namespace tera {

/// UsageError for a type or a regular expression that is not known here.
Normalizer make_normalizer(const JsonObject& json);

/// The pattern of a Replace, {"String": ...} or {"Regex": ...}.
ReplacePattern replace_pattern(const JsonObject& json);

}  // namespace tera
