// Tokenises a file of JSON lines into .bin/.idx pairs, one per key, as Megatron's tools/preprocess_data.py does.
//
// Workers take blocks of lines in turn and tokenise them; the calling thread writes their results in the order of the
// input. So the bytes written do not depend on the number of workers, and memory on neither the size of the input.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "token/tokenizer.h"

namespace tera {

struct PreprocessOptions {
    std::string input;
    std::string output_prefix;  // files PREFIX_KEY_document.bin and .idx
    std::vector<std::string> json_keys = {"text"};
    bool append_eod = false;  // after the last sequence of each document that has tokens
    int workers = 1;
    std::size_t block_bytes = std::size_t{1} << 20;
};

struct PreprocessProgress {
    std::int64_t documents = 0;
    std::int64_t tokens = 0;      // of all keys
    std::int64_t characters = 0;  // code points of the lines read, with their ends
    std::int64_t bytes = 0;
    std::int64_t total_bytes = 0;  // of the input; 0 if not known
};

/// The prefix under which the documents of a key are written.
std::string preprocess_output(const PreprocessOptions& options, const std::string& key);

/// Writes all outputs, and nothing under their final names unless all lines were good. `report`, if given, is called
/// after each document, in order. UsageError for anything wrong with the input, naming file and line; the same one
/// whatever the number of workers.
PreprocessProgress preprocess(const Tokenizer& tokenizer, const PreprocessOptions& options,
                              const std::function<void(const PreprocessProgress&)>& report = {});

}  // namespace tera
