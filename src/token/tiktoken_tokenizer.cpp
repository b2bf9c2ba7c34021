#include "token/tiktoken_tokenizer.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "io/byte_source.h"
#include "io/crc32c.h"
#include "token/bpe_encoder.h"
#include "token/tiktoken_files.h"

namespace tera {

namespace {

constexpr std::int64_t usual_vocab_size = 1 << 17;
constexpr std::size_t largest_file = std::size_t{1} << 28;  // bytes, unpacked

struct NamedPattern {
    std::string_view name;
    PretokenPattern pattern;
};
constexpr std::array patterns = {
    NamedPattern{"v1", PretokenPattern::tekken_v1}, NamedPattern{"v2", PretokenPattern::tekken_v2},
    NamedPattern{"gpt2", PretokenPattern::gpt2},    NamedPattern{"cl100k", PretokenPattern::cl100k},
    NamedPattern{"o200k", PretokenPattern::o200k},  NamedPattern{"llama3", PretokenPattern::llama3},
};

/// .tiktoken files tell nothing about themselves but how many tokens they have.
struct KnownRanks {
    std::size_t tokens;
    PretokenPattern pattern;
    std::int64_t size;
    std::int32_t eod;
};
constexpr std::array known_ranks = {
    KnownRanks{50256, PretokenPattern::gpt2, 50257, 50256},       // r50k_base
    KnownRanks{100256, PretokenPattern::cl100k, 100277, 100257},  // cl100k_base
    KnownRanks{199998, PretokenPattern::o200k, 200019, 199999},   // o200k_base
    KnownRanks{128000, PretokenPattern::llama3, 128256, 128001},  // Llama 3
};

std::vector<std::pair<std::int32_t, std::string>> known_specials(std::size_t tokens) {
    switch (tokens) {
        case 100256:
            return {{100257, "<|endoftext|>"},
                    {100258, "<|fim_prefix|>"},
                    {100259, "<|fim_middle|>"},
                    {100260, "<|fim_suffix|>"},
                    {100276, "<|endofprompt|>"}};
        case 199998:
            return {{199999, "<|endoftext|>"}, {200018, "<|endofprompt|>"}};
        case 128000:
            return {{128000, "<|begin_of_text|>"}, {128001, "<|end_of_text|>"}};
        default:
            return {{static_cast<std::int32_t>(tokens), "<|endoftext|>"}};
    }
}

std::string read_packed(const std::string& path) {
    const auto source = open_bytes(path);
    std::string bytes;
    for (;;) {
        const std::size_t before = bytes.size(), step = std::size_t{1} << 20;
        if (before > largest_file)
            usage_error(path, ": has more than ", largest_file >> 20, " MiB; is it a vocabulary?");
        bytes.resize(before + step);
        bytes.resize(before + source->read({bytes.data() + before, step}));
        if (bytes.size() < before + step) return bytes;
    }
}

std::optional<PretokenPattern> pattern_of(const std::string& name) {
    if (name.empty()) return std::nullopt;
    const auto found = std::find_if(patterns.begin(), patterns.end(), [&](const auto& p) { return p.name == name; });
    if (found == patterns.end())
        usage_error("--tiktoken-pattern ", name, " is unknown; there are v1, v2, gpt2, cl100k, o200k and llama3");
    return found->pattern;
}

/// The names of ids 0..n-1 of a JSON vocabulary.
std::vector<std::string> special_names(const TokenizerConfig& config) {
    std::vector<std::string> names = config.tiktoken_special_tokens;
    if (names.empty()) names = {"<unk>", "<s>", "</s>"};
    for (const char* needed : {"<unk>", "<s>", "</s>"})
        if (std::find(names.begin(), names.end(), needed) == names.end())
            usage_error("--tiktoken-special-tokens: ", needed, " is missing; <unk>, <s> and </s> must be among them");
    const auto count = static_cast<std::size_t>(config.tiktoken_num_special_tokens);
    if (names.size() > count)
        usage_error("--tiktoken-special-tokens: ", names.size(), " tokens, but --tiktoken-num-special-tokens is ",
                    count);
    while (names.size() < count) names.push_back(cat("<SPECIAL_", names.size(), ">"));
    auto sorted = names;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) usage_error("--tiktoken-special-tokens: ", *twice, " is there twice");
    return names;
}

TiktokenVocab json_vocab(const TokenizerConfig& config, std::string_view bytes) {
    const std::optional<PretokenPattern> pattern = pattern_of(config.tiktoken_pattern);
    if (!pattern) usage_error("--tiktoken-pattern is missing: TikTokenizer needs v1 or v2");
    const std::int64_t size = config.vocab_size > 0 ? config.vocab_size : usual_vocab_size;
    const std::int64_t specials = config.tiktoken_num_special_tokens;
    if (specials < 3 || specials >= size || size > std::int64_t{1} << 21)
        usage_error("--tiktoken-num-special-tokens ", specials, " with --vocab-size ", size,
                    " is out of range; 3 or more, fewer than the vocabulary, which may have 2097152");
    TiktokenVocab vocab;
    vocab.pattern = *pattern;
    vocab.size = size;
    vocab.first_id = static_cast<std::int32_t>(specials);
    const std::vector<std::string> names = special_names(config);
    for (const std::string& name : names) {
        const auto id = static_cast<std::int32_t>(vocab.specials.size());
        if (name == "<s>") vocab.bos = id;
        if (name == "</s>") vocab.eos = vocab.eod = id;
        vocab.specials.emplace_back(id, name);
    }
    vocab.tokens = parse_tiktoken_json(bytes, config.tokenizer_model, static_cast<std::size_t>(size - specials));
    return vocab;
}

TiktokenVocab rank_vocab(const TokenizerConfig& config, std::string_view bytes) {
    TiktokenVocab vocab;
    vocab.tokens = parse_tiktoken_ranks(bytes, config.tokenizer_model);
    vocab.specials = known_specials(vocab.tokens.size());
    const std::optional<PretokenPattern> given = pattern_of(config.tiktoken_pattern);
    const auto known = std::find_if(known_ranks.begin(), known_ranks.end(),
                                    [&](const KnownRanks& k) { return k.tokens == vocab.tokens.size(); });
    if (known != known_ranks.end()) {
        vocab.pattern = given.value_or(known->pattern);
        vocab.size = known->size;
        vocab.eod = known->eod;
        if (vocab.specials.front().second == "<|begin_of_text|>") vocab.bos = vocab.specials.front().first;
    } else {
        if (!given)
            usage_error("--tiktoken-pattern is missing: ", config.tokenizer_model, " has ", vocab.tokens.size(),
                        " tokens and is none of cl100k_base, o200k_base, r50k_base and Llama 3; give v1, v2, gpt2, "
                        "cl100k, o200k or llama3");
        vocab.pattern = *given;
        vocab.size = static_cast<std::int64_t>(vocab.tokens.size()) + 1;
        vocab.eod = static_cast<std::int32_t>(vocab.tokens.size());
    }
    if (config.vocab_size > 0 && config.vocab_size != vocab.size)
        usage_error("--vocab-size ", config.vocab_size, ": ", config.tokenizer_model, " has ", vocab.size,
                    " ids; leave the flag out");
    vocab.eos = vocab.eod;
    return vocab;
}

}  // namespace

TiktokenTokenizer::TiktokenTokenizer(TiktokenVocab vocab)
    : vocab_(std::move(vocab)), model_(BpeModel::from_ranks(vocab_.tokens, vocab_.first_id)) {}

std::unique_ptr<Encoder> TiktokenTokenizer::make_encoder() const {
    return std::make_unique<BpeEncoder>(model_, vocab_.pattern);
}

std::string TiktokenTokenizer::decode(std::span<const std::int32_t> ids) const {
    std::string text;
    for (const std::int32_t id : ids) {
        const std::int64_t rank = std::int64_t{id} - vocab_.first_id;
        if (rank >= 0 && rank < static_cast<std::int64_t>(vocab_.tokens.size())) {
            text += vocab_.tokens[static_cast<std::size_t>(rank)];
            continue;
        }
        const auto special =
            std::lower_bound(vocab_.specials.begin(), vocab_.specials.end(), id,
                             [](const auto& entry, std::int32_t wanted) { return entry.first < wanted; });
        if (special == vocab_.specials.end() || special->first != id)
            usage_error("token id ", id, " is not in the vocabulary of ", vocab_size(), " entries");
        text += special->second;
    }
    return text;
}

std::uint32_t TiktokenTokenizer::checksum() const {
    std::uint32_t sum =
        static_cast<std::uint32_t>(vocab_.pattern) * 1000003u + static_cast<std::uint32_t>(vocab_.first_id);
    for (const std::string& token : vocab_.tokens) {
        sum = crc32c(sum, std::as_bytes(std::span(token)));
        sum = crc32c(sum, std::as_bytes(std::span("|", 1)));
    }
    return sum;
}

std::unique_ptr<Tokenizer> load_tiktoken(const TokenizerConfig& config) {
    const std::string bytes = read_packed(config.tokenizer_model);
    const std::size_t first = bytes.find_first_not_of(" \t\r\n");
    const bool is_json = first != std::string::npos && bytes[first] == '[';
    return std::make_unique<TiktokenTokenizer>(is_json ? json_vocab(config, bytes) : rank_vocab(config, bytes));
}

}  // namespace tera
