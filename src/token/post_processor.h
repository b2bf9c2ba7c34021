// The "post_processor" of a tokenizer.json: ids put before and behind those of the text. (All else that these do is
// about places in the text, which are not kept here.)
#pragma once

#include <cstdint>
#include <vector>

#include "io/json_file.h"

namespace tera {

struct PostProcessor {
    std::vector<std::int32_t> before, after;
};

/// Known are TemplateProcessing (its "single"), BertProcessing, RobertaProcessing, ByteLevel, and a Sequence of these
/// of which at most one adds anything. UsageError otherwise.
PostProcessor make_post_processor(const JsonObject& json);

}  // namespace tera
