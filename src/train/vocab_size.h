// The size of the vocabulary without loading the tokenizer: counted in its file where there is one, else the usual size
// of its type. For planning, where neither tokenizer nor data need be at hand.
#pragma once

#include <cstdint>
#include <string>

#include "config/run_config.h"

namespace tera {

struct VocabSize {
    std::int64_t size = 0;  // before padding
    std::string source;     // where the number comes from, as a phrase for the user
};

/// UsageError if the file is broken, or if it is absent and the type has no usual size and --vocab-size is not given.
VocabSize find_vocab_size(const RunConfig& config);

}  // namespace tera
