#include "token/tiktoken_files.h"

#include <array>
#include <charconv>
#include <unordered_set>

#include "core/error.h"
#include "token/json_scan.h"

namespace tera {

namespace {

constexpr std::size_t longest_token = 1024;  // bytes; all cuts of a token in two are looked up
constexpr std::size_t most_tokens = std::size_t{1} << 21;

/// What both formats ask of a list of tokens, checked as it grows.
class TokenList {
  public:
    explicit TokenList(const std::string& file) : file_(file) { tokens_.reserve(std::size_t{1} << 17); }

    std::size_t size() const { return tokens_.size(); }
    void add(const std::string& base64, std::int64_t rank) {
        if (rank != static_cast<std::int64_t>(size()))
            usage_error(file_, ": entry ", size(), " has rank ", rank, "; ranks must be 0, 1, 2, ... in order");
        std::string token;
        if (!decode_base64(base64, token) || token.empty())
            usage_error(file_, ": entry ", size(), ": \"", base64.substr(0, 40), "\" is not a token in base64");
        if (token.size() > longest_token)
            usage_error(file_, ": entry ", size(), " has ", token.size(), " bytes; at most ", longest_token,
                        " are supported");
        if (size() == most_tokens) usage_error(file_, ": has more than ", most_tokens, " tokens");
        if (!known_.insert(token).second) usage_error(file_, ": entry ", size(), ": the token is there twice");
        tokens_.push_back(std::move(token));
    }
    std::vector<std::string> finish() {
        for (int byte = 0; byte < 256; ++byte)
            if (!known_.count(std::string(1, static_cast<char>(byte))))
                usage_error(file_, ": has no token for byte ", byte, "; is it a tiktoken vocabulary?");
        return std::move(tokens_);
    }

  private:
    const std::string& file_;
    std::vector<std::string> tokens_;
    std::unordered_set<std::string> known_;
};

struct Entry {
    std::int64_t rank = -1;
    std::string token_bytes;
};

Entry read_entry(JsonScanner& json, std::string& scratch) {
    Entry entry;
    std::array<bool, 3> seen{};
    json.expect('{', "an object");
    do {
        json.read_string(scratch);
        json.expect(':', "':'");
        if (scratch == "rank") {
            entry.rank = json.read_integer();
            seen[0] = true;
        } else if (scratch == "token_bytes") {
            json.read_string(entry.token_bytes);
            seen[1] = true;
        } else if (scratch == "token_str") {
            json.skip_value();
            seen[2] = true;
        } else {
            json.fail("an entry has the key \"" + scratch + "\"; there must be rank, token_bytes and token_str alone");
        }
    } while (json.accept(','));
    json.expect('}', "',' or '}'");
    if (!seen[0] || !seen[1] || !seen[2]) json.fail("an entry lacks one of rank, token_bytes and token_str");
    return entry;
}

}  // namespace

bool decode_base64(std::string_view text, std::string& out) {
    static const std::array<int, 256> value_of = [] {
        std::array<int, 256> values;
        values.fill(-1);
        constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        for (std::size_t i = 0; i < digits.size(); ++i)
            values[static_cast<unsigned char>(digits[i])] = static_cast<int>(i);
        return values;
    }();
    out.clear();
    if (text.size() % 4 != 0) return false;
    const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool is_padding = i >= text.size() - padding;
        const int value = is_padding ? 0 : value_of[static_cast<unsigned char>(text[i])];
        if (value < 0) return false;
        bits = bits << 6 | static_cast<std::uint32_t>(value);
        if (i % 4 != 3) continue;
        for (int shift = 16; shift >= 0; shift -= 8) out += static_cast<char>(bits >> shift);
    }
    out.resize(out.size() - padding);
    return true;
}

std::vector<std::string> parse_tiktoken_json(std::string_view bytes, const std::string& file, std::size_t count) {
    TokenList list(file);
    JsonScanner json(bytes);
    std::string scratch;
    try {
        json.expect('[', "a list of tokens");
        if (!json.accept(']')) {
            do {
                const Entry entry = read_entry(json, scratch);
                if (list.size() == count) continue;  // the rest is not used
                const std::size_t at = list.size();
                list.add(entry.token_bytes, entry.rank);
                if (at < 256 && !(decode_base64(entry.token_bytes, scratch) && scratch.size() == 1 &&
                                  static_cast<unsigned char>(scratch[0]) == at))
                    usage_error(file, ": entry ", at, " must be the single byte ", at);
            } while (json.accept(','));
            json.expect(']', "',' or ']'");
        }
        json.expect_end();
    } catch (const JsonSyntaxError& error) {
        usage_error(file, ": byte ", error.offset(), ": ", error.what());
    }
    if (list.size() < count)
        usage_error(file, ": has ", list.size(), " tokens, fewer than the ", count,
                    " that --vocab-size less --tiktoken-num-special-tokens asks for");
    return list.finish();
}

std::vector<std::string> parse_tiktoken_ranks(std::string_view bytes, const std::string& file) {
    TokenList list(file);
    while (!bytes.empty()) {
        std::string_view line = bytes.substr(0, bytes.find('\n'));
        bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty()) continue;
        const std::size_t space = line.find(' ');
        std::int64_t rank = -1;
        const char* const end = line.data() + line.size();
        if (space == std::string_view::npos || std::from_chars(line.data() + space + 1, end, rank).ptr != end)
            usage_error(file, ": entry ", list.size(), " is not a token in base64, a space and its rank");
        list.add(std::string(line.substr(0, space)), rank);
    }
    return list.finish();
}

}  // namespace tera
