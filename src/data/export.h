// Tokens back to text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "data/indexed_dataset.h"
#include "token/tokenizer.h"

namespace tera {

enum class ExportFormat {
    jsonl,  ///< {"text": ...}: what preprocess reads; a list where a document has several sequences
    text,   ///< the documents as they are, a blank line between two
    ids     ///< {"ids": [[...], ...]}: a list for each sequence; needs no tokenizer
};

struct ExportOptions {
    ExportFormat format = ExportFormat::jsonl;
    std::string key = "text";
    bool keep_eod = false;    // else the end-of-document token at the end of a document is left out
    std::int64_t first = 0;   // document to begin with
    std::int64_t count = -1;  // documents; below 0: to the end
};

struct ExportResult {
    std::int64_t documents = 0, tokens = 0;
    std::int64_t invalid = 0;  // documents whose bytes were no valid UTF-8; U+FFFD stands in their place
};

/// Calls write(bytes) with the text of each document in turn. `tokenizer` may be null for ExportFormat::ids. UsageError
/// for an id that the tokenizer does not have, and for image sequences.
ExportResult export_dataset(const IndexedDataset& data, const Tokenizer* tokenizer, const ExportOptions& options,
                            const std::function<void(std::string_view)>& write);

}  // namespace tera
