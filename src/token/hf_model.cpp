#include "token/hf_model.h"

#include "core/error.h"
#include "token/bpe_encoder.h"
#include "token/byte_level.h"
#include "token/hf_bpe.h"
#include "token/unigram.h"
#include "token/word_cache.h"
#include "token/wordpiece.h"

namespace tera {

namespace {

using Vocab = HfBpeModel::Vocab;

/// Remembers the ids of short pieces. Encode(piece, ids) finds those of a new one.
template <class Encode>
class CachedEncoder : public HfPieceEncoder {
  public:
    explicit CachedEncoder(Encode encode) : encode_(std::move(encode)) {}

    void encode(std::string_view piece, std::vector<std::int32_t>& ids) override {
        cache_.append(piece, ids, [&](std::vector<std::int32_t>& out) { encode_(piece, out); });
    }

  private:
    Encode encode_;
    WordCache cache_;
};

template <class Encode>
std::unique_ptr<HfPieceEncoder> cached(Encode encode) {
    return std::make_unique<CachedEncoder<Encode>>(std::move(encode));
}

/// Writes bytes in the printable alphabet for a model that works on characters.
class PrintableEncoder : public HfPieceEncoder {
  public:
    explicit PrintableEncoder(std::unique_ptr<HfPieceEncoder> inner) : inner_(std::move(inner)) {}
    void encode(std::string_view piece, std::vector<std::int32_t>& ids) override {
        inner_->encode(to_printable(piece), ids);
    }

  private:
    std::unique_ptr<HfPieceEncoder> inner_;
};

class ByteBpe : public HfTokenModel {
  public:
    explicit ByteBpe(BpeModel model) : model_(std::move(model)) {}
    std::unique_ptr<HfPieceEncoder> make_encoder() const override { return std::make_unique<Pieces>(model_); }
    std::unique_ptr<Encoder> make_text_encoder(PretokenPattern pattern) const override {
        return std::make_unique<BpeEncoder>(model_, pattern);
    }

  private:
    class Pieces : public HfPieceEncoder {
      public:
        explicit Pieces(const BpeModel& model) : encoder_(model, PretokenPattern::gpt2) {}
        void encode(std::string_view piece, std::vector<std::int32_t>& ids) override {
            encoder_.encode_piece(piece, ids);
        }

      private:
        BpeEncoder encoder_;
    };
    BpeModel model_;
};

class CharBpe : public HfTokenModel {
  public:
    explicit CharBpe(HfBpeModel model) : model_(std::move(model)) {}
    std::unique_ptr<HfPieceEncoder> make_encoder() const override { return std::make_unique<HfBpeEncoder>(model_); }

  private:
    HfBpeModel model_;
};

class WordPiece : public HfTokenModel {
  public:
    explicit WordPiece(WordPieceModel model) : model_(std::move(model)) {}
    std::unique_ptr<HfPieceEncoder> make_encoder() const override {
        return cached([&model = model_](std::string_view word, auto& ids) { model.encode(word, ids); });
    }

  private:
    WordPieceModel model_;
};

class Unigram : public HfTokenModel {
  public:
    explicit Unigram(UnigramModel model) : model_(std::move(model)) {}
    std::unique_ptr<HfPieceEncoder> make_encoder() const override {
        return cached([&model = model_, scratch = UnigramModel::Scratch()](std::string_view piece, auto& ids) mutable {
            model.encode(piece, scratch, ids);
        });
    }

  private:
    UnigramModel model_;
};

class Printable : public HfTokenModel {
  public:
    explicit Printable(std::unique_ptr<HfTokenModel> inner) : inner_(std::move(inner)) {}
    std::unique_ptr<HfPieceEncoder> make_encoder() const override {
        return std::make_unique<PrintableEncoder>(inner_->make_encoder());
    }

  private:
    std::unique_ptr<HfTokenModel> inner_;
};

std::int32_t unknown_id(const JsonObject& options, const Vocab& vocab, const std::string& token) {
    const auto found = vocab.find(token);
    if (found == vocab.end())
        usage_error(options.where(), ": the unknown token \"", token, "\" is not in the vocabulary");
    return found->second;
}

void check_merges(const JsonObject& options, const TokenizerJson& json, const Vocab& vocab) {
    for (const auto& [left, right] : json.merges) {
        for (const std::string& token : {left, right, left + right})
            if (token.empty() || !vocab.contains(token))
                usage_error(options.where(), ": the merge of \"", left, "\" and \"", right, "\" needs the token \"",
                            token, "\", which is not in the vocabulary");
    }
}

bool has_all_bytes(const Vocab& vocab) {
    for (unsigned byte = 0; byte < 256; ++byte) {
        const char c = static_cast<char>(byte);
        if (!vocab.contains(to_printable({&c, 1}))) return false;
    }
    return true;
}

std::unique_ptr<HfTokenModel> make_bpe(const JsonObject& options, const TokenizerJson& json, bool is_byte_level) {
    if (options.real("dropout", 0.0) != 0) usage_error(options.where(), ": BPE with dropout is not supported");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
        if (!options.text(key, "").empty()) usage_error(options.where(), ": BPE with ", key, " is not supported");
    Vocab vocab(json.vocab.begin(), json.vocab.end());
    check_merges(options, json, vocab);
    HfBpeOptions choice;
    choice.fuse_unknown = options.boolean("fuse_unk", false);
    choice.byte_fallback = options.boolean("byte_fallback", false);
    choice.whole_piece_first = options.boolean("ignore_merges", false);
    if (is_byte_level && (has_all_bytes(vocab) || (!options.has("unk_token") && !choice.byte_fallback))) {
        BpeVocab by_id;
        for (const auto& [token, id] : json.vocab) {
            const auto at = static_cast<std::size_t>(id);
            if (by_id.token_of_id.size() <= at) by_id.token_of_id.resize(at + 1);
            by_id.token_of_id[at] = token;
        }
        BpeMerges merges;
        merges.pairs = json.merges;
        BpeOptions byte_options;
        byte_options.order = MergeOrder::leftmost;
        byte_options.whole_piece_first = choice.whole_piece_first;
        byte_options.drop_unknown = true;
        return std::make_unique<ByteBpe>(BpeModel(by_id, merges, byte_options));
    }
    if (options.has("unk_token")) choice.unknown = unknown_id(options, vocab, options.text("unk_token"));
    return std::make_unique<CharBpe>(HfBpeModel(std::move(vocab), json.merges, choice));
}

std::unique_ptr<HfTokenModel> make_word_piece(const JsonObject& options, const TokenizerJson& json) {
    const Vocab vocab(json.vocab.begin(), json.vocab.end());
    WordPieceOptions choice;
    choice.prefix = options.text("continuing_subword_prefix", "##");
    choice.unknown = unknown_id(options, vocab, options.text("unk_token", "[UNK]"));
    const std::int64_t most = options.integer("max_input_chars_per_word", 100);
    if (most < 0) options.fail("max_input_chars_per_word", "must not be negative");
    choice.max_chars = static_cast<std::size_t>(most);
    std::vector<std::pair<std::string_view, std::int32_t>> tokens(json.vocab.begin(), json.vocab.end());
    return std::make_unique<WordPiece>(WordPieceModel(tokens, std::move(choice)));
}

std::unique_ptr<HfTokenModel> make_unigram(const JsonObject& options, const TokenizerJson& json) {
    if (!options.has("unk_id"))
        usage_error(options.where(), ": Unigram without unk_id is not supported: text it has no token for has no id");
    UnigramOptions choice;
    const std::int64_t unknown = options.integer("unk_id");
    if (unknown < 0 || unknown >= static_cast<std::int64_t>(json.vocab.size()))
        options.fail("unk_id", "is not in the vocabulary");
    choice.unknown = static_cast<std::int32_t>(unknown);
    choice.byte_fallback = options.boolean("byte_fallback", false);
    std::vector<std::pair<std::string, double>> vocab;
    for (std::size_t id = 0; id < json.vocab.size(); ++id) vocab.emplace_back(json.vocab[id].first, json.scores[id]);
    return std::make_unique<Unigram>(UnigramModel(vocab, choice));
}

}  // namespace

std::unique_ptr<HfTokenModel> make_hf_model(const TokenizerJson& json, bool is_byte_level) {
    const JsonObject options = json.part(json.options, "model");
    std::unique_ptr<HfTokenModel> model;
    bool takes_bytes = false;
    if (json.model == TokenizerJson::Model::bpe) {
        model = make_bpe(options, json, is_byte_level);
        takes_bytes = dynamic_cast<const ByteBpe*>(model.get()) != nullptr;
    } else if (json.model == TokenizerJson::Model::word_piece) {
        model = make_word_piece(options, json);
    } else {
        model = make_unigram(options, json);
    }
    if (is_byte_level && !takes_bytes) return std::make_unique<Printable>(std::move(model));
    return model;
}

}  // namespace tera
