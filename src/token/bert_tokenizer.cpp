#include "token/bert_tokenizer.h"

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "token/bert_text.h"
#include "token/bpe_files.h"
#include "token/unicode.h"
#include "token/utf8.h"
#include "token/word_cache.h"

namespace tera {

/// What a vocab.txt holds, while the tokenizer is made.
struct BertTokenizer::Vocab {
    std::vector<std::string> tokens;
    std::unordered_map<std::string, std::int32_t> ids;

    std::int32_t add(const std::string& token) {
        const auto [place, is_new] = ids.try_emplace(token, static_cast<std::int32_t>(tokens.size()));
        if (is_new) tokens.push_back(token);
        return place->second;
    }
    std::int32_t at(const char* token, const std::string& file) const {
        const auto found = ids.find(token);
        if (found == ids.end()) usage_error(file, ": has no token ", token, "; is it a vocabulary of BERT?");
        return found->second;
    }
};

namespace {

constexpr std::size_t longest_word = 200;    // characters; longer ones are unknown
constexpr std::size_t large_word = 1 << 20;  // bytes; above, the scratch memory is given back
constexpr std::string_view continues = "##";

/// As Python's strip().
std::string_view stripped(std::string_view text) {
    const auto is_blank = [](std::uint32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); };
    std::size_t begin = text.size(), end = 0;
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint code = decode_utf8(text.data() + at, text.data() + text.size());
        if (!is_blank(code.value)) {
            begin = std::min(begin, at);
            end = at + code.bytes;
        }
        at += code.bytes;
    }
    return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

/// Cuts off the next line; it ends at \n, \r\n or \r.
std::string_view take_vocab_line(std::string_view& rest) {
    const std::size_t end = std::min(rest.find_first_of("\r\n"), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end);
    if (rest.starts_with("\r\n")) rest.remove_prefix(1);
    if (!rest.empty()) rest.remove_prefix(1);
    return line;
}

class BertEncoder : public Encoder {
  public:
    BertEncoder(const WordPieceModel& model, bool lower_case) : model_(model), lower_case_(lower_case) {
        for (std::uint32_t c = 0; c < 128; ++c) ascii_[c] = bert_char(c);
    }

    void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
        word_.clear();
        for (const char *p = text.data(), *end = p + text.size(); p < end;) {
            const auto byte = static_cast<unsigned char>(*p);
            if (byte < 128) {
                const BertChar kind = ascii_[byte];
                if (kind == BertChar::blank)
                    end_word(ids);
                else if (kind != BertChar::dropped)
                    word_ += *p;
                ++p;
                continue;
            }
            const CodePoint code = decode_utf8(p, end);
            const BertChar kind = code.value == CodePoint::invalid ? BertChar::dropped : bert_char(code.value);
            if (kind == BertChar::chinese || kind == BertChar::blank) end_word(ids);
            if (kind != BertChar::blank && kind != BertChar::dropped) word_.append(p, code.bytes);
            if (kind == BertChar::chinese) end_word(ids);
            p += code.bytes;
        }
        end_word(ids);
    }

  private:
    /// The text up to here is what was between two blanks.
    void end_word(std::vector<std::int32_t>& ids) {
        if (word_.empty()) return;
        cache_.append(word_, ids, [this](std::vector<std::int32_t>& out) { encode_word(out); });
        if (word_.size() > large_word) {
            word_ = {};
            codes_ = lowered_ = {};
        }
        word_.clear();
    }

    void encode_word(std::vector<std::int32_t>& ids) {
        piece_.clear();
        const auto add = [&](BertChar kind, const auto& append) {
            if (kind == BertChar::punct || kind == BertChar::blank) end_piece(ids);
            if (kind != BertChar::blank) append();
            if (kind == BertChar::punct) end_piece(ids);
        };
        if (std::none_of(word_.begin(), word_.end(), [](char c) { return static_cast<unsigned char>(c) >= 128; })) {
            for (const char c : word_) {
                const bool is_upper = lower_case_ && c >= 'A' && c <= 'Z';
                add(ascii_[static_cast<unsigned char>(c)],
                    [&] { piece_ += is_upper ? static_cast<char>(c - 'A' + 'a') : c; });
            }
            return end_piece(ids);
        }
        codes_.clear();
        for (const char *p = word_.data(), *end = p + word_.size(); p < end;) {
            const CodePoint code = decode_utf8(p, end);
            codes_.push_back(code.value);
            p += code.bytes;
        }
        if (lower_case_) {
            bert_lower(codes_, lowered_);
            codes_.swap(lowered_);
        }
        for (const std::uint32_t c : codes_) add(c < 128 ? ascii_[c] : bert_char(c), [&] { append_utf8(piece_, c); });
        end_piece(ids);
    }

    void end_piece(std::vector<std::int32_t>& ids) {
        if (!piece_.empty()) model_.encode(piece_, ids);
        piece_.clear();
    }

    const WordPieceModel& model_;
    bool lower_case_;
    std::array<BertChar, 128> ascii_;
    WordCache cache_;
    std::string word_, piece_;
    std::vector<std::uint32_t> codes_, lowered_;
};

void replace_all(std::string& text, std::string_view what, std::string_view with) {
    std::string out;
    std::size_t from = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, from)) {
        out.append(text, from, at - from);
        out += with;
        from = at + what.size();
    }
    if (from > 0) text = out.append(text, from);
}

std::vector<std::pair<std::string_view, std::int32_t>> pairs_of(const std::vector<std::string>& tokens) {
    std::vector<std::pair<std::string_view, std::int32_t>> pairs;
    for (const std::string& token : tokens) pairs.emplace_back(token, static_cast<std::int32_t>(pairs.size()));
    return pairs;
}

}  // namespace

BertTokenizer::BertTokenizer(std::string_view bytes, const std::string& file, Options options)
    : BertTokenizer(
          [&] {
              Vocab vocab;
              const std::size_t invalid = find_invalid_utf8(bytes);
              if (invalid != std::string_view::npos)
                  usage_error(file, ": byte ", invalid, " is not valid UTF-8; a vocabulary of BERT is text");
              for (std::string_view rest = bytes; !rest.empty();) {
                  const std::string token(stripped(take_vocab_line(rest)));
                  const auto line = vocab.tokens.size() + 1;
                  const std::int32_t id = vocab.add(token);
                  if (vocab.tokens.size() < line)
                      usage_error(file, ": line ", line, ": token \"", token, "\" is there already, on line ", id + 1);
              }
              return vocab;
          }(),
          file, options) {}

BertTokenizer::BertTokenizer(Vocab vocab, const std::string& file, Options options)
    : options_(options),
      pad_(vocab.at("[PAD]", file)),
      bos_(vocab.add("[BOS]")),
      eos_(vocab.add("[EOS]")),
      cls_(vocab.at("[CLS]", file)),
      sep_(vocab.at("[SEP]", file)),
      mask_(vocab.at("[MASK]", file)),
      sentinels_([&] {
          std::vector<std::int32_t> ids;
          for (std::int64_t i = 0; i < options.extra_ids; ++i) ids.push_back(vocab.add(cat("<extra_id_", i, ">")));
          return ids;
      }()),
      model_(pairs_of(vocab.tokens), {std::string(continues), vocab.at("[UNK]", file), longest_word}) {
    tokens_ = std::move(vocab.tokens);
}

std::unique_ptr<Encoder> BertTokenizer::make_encoder() const {
    return std::make_unique<BertEncoder>(model_, options_.lower_case);
}

std::string BertTokenizer::decode(std::span<const std::int32_t> ids) const {
    std::string text;
    for (const std::int32_t id : ids) {
        if (id < 0 || id >= vocab_size())
            usage_error("token id ", id, " is outside the vocabulary of ", vocab_size(), " entries");
        if (&id != ids.data()) text += ' ';
        text += tokens_[static_cast<std::size_t>(id)];
    }
    replace_all(text, " ##", "");
    text = stripped(text);
    constexpr std::pair<std::string_view, std::string_view> clean_up[] = {
        {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
        {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (const auto& [what, with] : clean_up) replace_all(text, what, with);
    return text;
}

std::vector<TokenizerFile> BertTokenizer::files() const {
    std::string vocab;
    for (const std::string& token : tokens_) vocab += token + "\n";
    const std::string lower = options_.lower_case ? "true" : "false";
    return {{"vocab.txt", vocab},
            {"tokenizer_config.json", "{\"tokenizer_class\": \"BertTokenizer\", \"do_lower_case\": " + lower + "}\n"}};
}

std::unique_ptr<Tokenizer> load_bert(const std::string& vocab_file, BertTokenizer::Options options) {
    return std::make_unique<BertTokenizer>(read_token_file(vocab_file), vocab_file, options);
}

}  // namespace tera
