#include "token/train_bpe.h"

#include <algorithm>
#include <array>
#include <queue>

#include "core/error.h"
#include "token/byte_level.h"
#include "token/pretokenize.h"
#include "token/utf8.h"

namespace tera {

namespace {

using Pair = std::uint64_t;  // left id << 32 | right id: comparing pairs compares left ids first

Pair make_pair_key(std::uint32_t left, std::uint32_t right) { return static_cast<Pair>(left) << 32 | right; }
std::uint32_t left_of(Pair pair) { return static_cast<std::uint32_t>(pair >> 32); }
std::uint32_t right_of(Pair pair) { return static_cast<std::uint32_t>(pair); }

struct Word {
    std::size_t start;  // in Trainer::symbols_
    std::uint32_t length;
    std::int64_t count;
};

/// A pair that may be merged next, with the words in which it was seen to appear.
struct Candidate {
    std::int64_t count;  // may be out of date; checked when it comes up
    Pair pair;
    std::uint64_t number;  // order of creation, so that even equal candidates come in one order
    std::vector<std::uint32_t> words;
};

struct Later {
    bool operator()(const Candidate& a, const Candidate& b) const {
        if (a.count != b.count) return a.count < b.count;
        if (a.pair != b.pair) return a.pair > b.pair;
        return a.number > b.number;
    }
};

class Trainer {
  public:
    Trainer(const PieceCounter& pieces, const BpeTrainOptions& options) : options_(options) {
        add_first_tokens();
        add_words(pieces);
        for (std::uint32_t w = 0; w < words_.size(); ++w) {
            const Word& word = words_[w];
            for (std::uint32_t i = 0; i + 1 < word.length; ++i)
                change(make_pair_key(symbols_[word.start + i], symbols_[word.start + i + 1]), 1, w);
        }
        queue_touched();
    }

    TrainedBpe run() {
        const auto wanted = static_cast<std::size_t>(options_.vocab_size);
        while (tokens_.size() < wanted && !queue_.empty()) {
            // priority_queue hands out const references only; the element leaves the queue at once.
            Candidate best = std::move(const_cast<Candidate&>(queue_.top()));
            queue_.pop();
            const std::int64_t count = counts_[best.pair];
            if (best.count != count) {
                best.count = count;
                queue_.push(std::move(best));
                continue;
            }
            if (count < 1 || count < options_.min_frequency) break;
            merge(best);
            if (options_.progress) options_.progress(static_cast<std::int64_t>(tokens_.size()), options_.vocab_size);
        }
        return {BpeVocab{std::move(tokens_)}, std::move(merges_)};
    }

  private:
    void add_first_tokens() {
        for (const std::string& token : options_.special_tokens) token_id(token);
        std::array<std::uint8_t, 256> bytes;
        for (int i = 0; i < 256; ++i) bytes[i] = static_cast<std::uint8_t>(i);
        std::sort(bytes.begin(), bytes.end(),
                  [](auto a, auto b) { return byte_to_code_point(a) < byte_to_code_point(b); });
        for (const std::uint8_t byte : bytes) {
            const char c = static_cast<char>(byte);
            id_of_byte_[byte] = token_id(to_printable({&c, 1}));
        }
    }

    void add_words(const PieceCounter& pieces) {
        std::vector<const PieceCounter::Counts::value_type*> sorted;
        sorted.reserve(pieces.counts().size());
        for (const auto& entry : pieces.counts()) sorted.push_back(&entry);
        std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->first < b->first; });
        for (const auto* entry : sorted) {
            words_.push_back({symbols_.size(), static_cast<std::uint32_t>(entry->first.size()), entry->second});
            for (const char c : entry->first) symbols_.push_back(id_of_byte_[static_cast<unsigned char>(c)]);
        }
    }

    /// The id of a token, made new if it is not there. Two pairs may join to the same token.
    std::uint32_t token_id(const std::string& token) {
        const auto [place, is_new] = id_of_.try_emplace(token, static_cast<std::uint32_t>(tokens_.size()));
        if (is_new) tokens_.push_back(token);
        return place->second;
    }

    void change(Pair pair, int by, std::uint32_t word) {
        counts_[pair] += by * words_[word].count;
        if (by < 0) return;
        auto& where = touched_[pair];
        if (where.empty() || where.back() != word) where.push_back(word);
    }

    void queue_touched() {
        for (auto& [pair, words] : touched_) {
            const std::int64_t count = counts_[pair];
            if (count > 0) queue_.push({count, pair, next_number_, std::move(words)});
        }
        ++next_number_;
        touched_.clear();
    }

    void merge(const Candidate& best) {
        const std::string &left = tokens_[left_of(best.pair)], &right = tokens_[right_of(best.pair)];
        merges_.pairs.emplace_back(left, right);
        const std::uint32_t joined = token_id(left + right);
        for (const std::uint32_t word : best.words) merge_word(word, best.pair, joined);
        queue_touched();
    }

    void merge_word(std::uint32_t w, Pair pair, std::uint32_t joined) {
        Word& word = words_[w];
        std::uint32_t* symbols = symbols_.data() + word.start;
        std::uint32_t kept = 0;
        for (std::uint32_t i = 0; i < word.length; ++kept) {
            if (i + 1 == word.length || make_pair_key(symbols[i], symbols[i + 1]) != pair) {
                symbols[kept] = symbols[i++];
                continue;
            }
            if (kept > 0) {
                change(make_pair_key(symbols[kept - 1], left_of(pair)), -1, w);
                change(make_pair_key(symbols[kept - 1], joined), 1, w);
            }
            i += 2;
            symbols[kept] = joined;
            if (i < word.length) {
                change(make_pair_key(right_of(pair), symbols[i]), -1, w);
                change(make_pair_key(joined, symbols[i]), 1, w);
            }
        }
        word.length = kept;
    }

    const BpeTrainOptions& options_;
    std::vector<std::string> tokens_;
    std::unordered_map<std::string, std::uint32_t> id_of_;
    std::array<std::uint32_t, 256> id_of_byte_{};
    BpeMerges merges_;

    std::vector<std::uint32_t> symbols_;  // of all words, one after the other
    std::vector<Word> words_;
    std::unordered_map<Pair, std::int64_t> counts_;
    std::unordered_map<Pair, std::vector<std::uint32_t>> touched_;  // pairs that appeared since the last merge
    std::priority_queue<Candidate, std::vector<Candidate>, Later> queue_;
    std::uint64_t next_number_ = 0;
};

}  // namespace

void PieceCounter::add(std::string_view text) {
    const char* end = text.data() + text.size();
    for (const char* p = text.data(); p < end;) {
        const char* stop = piece_end(PretokenPattern::gpt2, p, end);
        const std::string_view piece(p, static_cast<std::size_t>(stop - p));
        const auto found = counts_.find(piece);
        if (found != counts_.end())
            ++found->second;
        else
            counts_.emplace(piece, 1);
        p = stop;
    }
}

void PieceCounter::merge(const PieceCounter& other) {
    for (const auto& [piece, count] : other.counts_) counts_[piece] += count;
}

void check_train_options(const BpeTrainOptions& options) {
    const auto least = static_cast<std::int64_t>(options.special_tokens.size()) + 256;
    constexpr std::int64_t most = 1 << 24;
    if (options.vocab_size < least || options.vocab_size > most)
        usage_error("--vocab-size ", options.vocab_size, " is out of range: byte-level BPE needs ", least,
                    " (256 bytes and the special tokens) to ", most);
}

TrainedBpe train_bpe(const PieceCounter& pieces, const BpeTrainOptions& options) {
    check_train_options(options);
    return Trainer(pieces, options).run();
}

}  // namespace tera
