// What a .bin/.idx pair holds, and whether it is whole.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/indexed_dataset.h"

namespace tera {

/// Spread of a list of lengths.
struct LengthStatistics {
    std::int64_t count = 0, min = 0, max = 0, zeros = 0;
    double mean = 0;
    std::int64_t median = 0, p90 = 0, p99 = 0;  // smallest length that at least so many of 100 do not exceed
    std::vector<std::int64_t> histogram;        // [0]: length 0; [i]: from 2^(i-1) to 2^i - 1
};

/// Counts how often each length occurs, so that the memory does not grow with how many there are.
class LengthCounter {
  public:
    void add(std::int64_t length);
    LengthStatistics statistics() const;

  private:
    std::vector<std::int64_t> short_ = std::vector<std::int64_t>(1 << 16);  // count of length i
    std::map<std::int64_t, std::int64_t> long_;                             // count of each longer one
};

/// What reading every token shows.
struct TokenCheck {
    std::int64_t min_id = 0, max_id = 0;  // 0 and -1 if there is no token
    std::int64_t different_ids = 0;
    std::int64_t documents_ending_in_eod = 0;  // of those with tokens; only if an eod is given
    std::string bin_crc32c, idx_crc32c;
};

struct Inspection {
    std::string prefix;
    TokenType type = TokenType::i32;
    std::int64_t sequences = 0, documents = 0, tokens = 0;
    std::int64_t bin_bytes = 0, idx_bytes = 0;
    std::int64_t image_sequences = 0;
    bool is_multimodal = false;
    LengthStatistics sequence_lengths, document_lengths;  // in tokens
    std::optional<TokenCheck> check;
};

struct InspectOptions {
    bool check = false;               // read the whole .bin
    std::int64_t vocab_size = 0;      // with check: ids must be below it; 0: not known
    std::optional<std::int32_t> eod;  // with check: counts the documents that end in it
};

/// UsageError for the first thing that is wrong: always the index and the length of the .bin; with `check` also that
/// the .bin holds nothing more, and that every stored value is a token id, not negative and inside the vocabulary.
Inspection inspect_dataset(const std::string& prefix, const InspectOptions& options = {});

nlohmann::json inspection_json(const Inspection& inspection);
/// For people: some lines of counts and the histogram of document lengths.
std::string inspection_text(const Inspection& inspection);

}  // namespace tera
