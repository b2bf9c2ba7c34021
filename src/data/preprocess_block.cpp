#include "data/preprocess_block.h"

#include <limits>

#include "core/error.h"
#include "token/utf8.h"

namespace tera {

BlockTokenizer::BlockTokenizer(const Tokenizer& tokenizer, const std::vector<std::string>& keys, bool append_eod)
    : encoder_(tokenizer.make_encoder()), line_(keys) {
    if (append_eod) eod_ = tokenizer.eod();
}

TokenBlock BlockTokenizer::tokenize(std::string_view block) {
    TokenBlock out;
    out.keys.resize(line_.keys().size());
    while (!block.empty()) {
        const Line line = take_line(block);
        try {
            line_.parse(line.text);
            for (std::size_t k = 0; k < out.keys.size(); ++k) add_document(line_.strings(k), out.keys[k]);
        } catch (const UsageError& error) {
            out.problem = error.what();
            return out;
        }
        // Python reads \r\n as one character.
        out.characters.push_back(count_utf8(line.text) + (line.raw.size() > line.text.size() ? 1 : 0));
        out.bytes.push_back(line.raw.size());
    }
    return out;
}

void BlockTokenizer::add_document(const std::vector<std::string>& sentences, KeyTokens& out) {
    const std::size_t first_token = out.tokens.size(), first_sequence = out.sequence_lengths.size();
    for (const std::string& sentence : sentences) {
        const std::size_t before = out.tokens.size();
        encoder_->encode(sentence, out.tokens);
        const std::size_t length = out.tokens.size() - before;
        if (length >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
            usage_error("gives ", length, " tokens, more than a sequence can hold");
        if (length > 0) out.sequence_lengths.push_back(static_cast<std::int32_t>(length));
    }
    if (eod_ && out.tokens.size() > first_token) {
        out.tokens.push_back(*eod_);
        ++out.sequence_lengths.back();
    }
    out.document_tokens.push_back(out.tokens.size() - first_token);
    out.document_sequences.push_back(out.sequence_lengths.size() - first_sequence);
}

}  // namespace tera
