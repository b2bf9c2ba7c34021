#include "soft_gpu/ptx_text.h"

#include <cctype>
#include <cstdlib>
#include <map>

#include "soft_gpu/memory.h"

namespace soft_gpu {
namespace {

[[noreturn]] void not_understood(int line, const std::string& what) {
    throw Fault("PTX, line " + std::to_string(line) + ": " + what);
}

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%'; }

/// Words (with their dots), numbers, strings and single characters; comments are passed over.
class Reader {
  public:
    Reader(std::string_view text, int line) : text_(text), line_(line) { next(); }

    const std::string& word() const { return word_; }
    bool at_end() const { return word_.empty(); }
    int line() const { return word_line_; }
    std::size_t begin() const { return begin_; }
    std::size_t end() const { return at_; }

    bool is(std::string_view w) const { return word_ == w; }
    bool take(std::string_view w) {
        if (word_ != w) return false;
        next();
        return true;
    }
    std::string take() {
        std::string w = word_;
        next();
        return w;
    }
    void must(std::string_view w) {
        if (!take(w)) not_understood(line(), "'" + std::string(w) + "' expected before '" + word_ + "'");
    }
    std::int64_t number() {
        const std::string w = take();
        char* end = nullptr;
        const auto n = static_cast<std::int64_t>(std::strtoull(w.c_str(), &end, 0));
        if (w.empty() || *end != 0) not_understood(line(), "a number expected, not '" + w + "'");
        return n;
    }

    void next() {
        pass_over_blanks();
        begin_ = at_;
        word_line_ = line_;
        if (at_ == text_.size()) {
            word_.clear();
            return;
        }
        if (text_[at_] == '"') {
            at_ = text_.find('"', at_ + 1) + 1;
        } else if (in_word(text_[at_]) || (text_[at_] == '.' && at_ + 1 < text_.size() && in_word(text_[at_ + 1]))) {
            // "::" is part of a word, ":" ends a label; "a.b" is one word.
            while (at_ < text_.size() && (in_word(text_[at_]) || text_[at_] == '.' || text_.substr(at_, 2) == "::" ||
                                          (text_[at_] == ':' && text_[at_ - 1] == ':' && at_ > begin_)))
                ++at_;
        } else {
            ++at_;
        }
        word_ = text_.substr(begin_, at_ - begin_);
    }

  private:
    void pass_over_blanks() {
        while (at_ < text_.size()) {
            if (text_[at_] == '\n')
                ++line_, ++at_;
            else if (std::isspace(static_cast<unsigned char>(text_[at_])) || text_[at_] == '\0')
                ++at_;
            else if (text_.substr(at_, 2) == "//")
                at_ = std::min(text_.find('\n', at_), text_.size());
            else
                break;
        }
    }

    std::string_view text_;
    std::size_t at_ = 0, begin_ = 0;
    int line_, word_line_ = 0;
    std::string word_;
};

std::size_t bytes_of(const std::string& type, int line) {
    if (type == ".pred") return 1;
    std::size_t digits = type.size();
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(type[digits - 1]))) --digits;
    if (digits == type.size()) not_understood(line, "no type '" + type + "'");
    return std::stoul(type.substr(digits)) / 8;
}

/// `.align 16 .b8 name[123]`, from behind the word that says which memory.
Variable parse_variable(Reader& r) {
    Variable v;
    std::size_t each = 1;
    while (r.word().starts_with(".")) {
        if (r.take(".align"))
            v.alignment = static_cast<std::size_t>(r.number());
        else if (r.is(".ptr") || r.is(".global") || r.is(".shared") || r.is(".const"))
            r.next();
        else {
            each = bytes_of(r.word(), r.line());
            v.alignment = std::max(v.alignment, each);
            r.next();
        }
    }
    v.name = r.take();
    v.bytes = each;
    if (r.take("[")) {
        v.dynamic = r.is("]");
        v.bytes = v.dynamic ? 0 : each * static_cast<std::size_t>(r.number());
        r.must("]");
    }
    return v;
}

void pass_to(Reader& r, std::string_view end) {
    while (!r.at_end() && !r.is(end)) r.next();
    r.take(end);
}

/// Names within braces.
class Scopes {
  public:
    void open() { open_.push_back(++opened_); }
    void close(int line) {
        if (open_.empty()) not_understood(line, "'}' without '{'");
        open_.pop_back();
    }
    bool outermost() const { return open_.empty(); }
    std::string declare(const std::string& name) {
        const std::string full = open_.empty() ? name : name + "@" + std::to_string(open_.back());
        known_[full] = true;
        return full;
    }
    /// The innermost of this name that is declared; else the name itself.
    std::string resolve(const std::string& name) const {
        for (auto scope = open_.rbegin(); scope != open_.rend(); ++scope) {
            const std::string full = name + "@" + std::to_string(*scope);
            if (known_.contains(full)) return full;
        }
        return name;
    }

  private:
    std::vector<int> open_;
    int opened_ = 0;
    std::map<std::string, bool> known_;
};

Operand parse_number(const std::string& w, int line, bool negative) {
    Operand o{Operand::Kind::number, {}, {}, 0, 0, {}};
    char* end = nullptr;
    if (w.size() > 2 && w[0] == '0' && (w[1] == 'f' || w[1] == 'F' || w[1] == 'd' || w[1] == 'D')) {
        o.real = static_cast<char>(std::tolower(w[1]));
        o.bits = std::strtoull(w.c_str() + 2, &end, 16);
    } else {
        o.bits = std::strtoull(w.c_str(), &end, 0);
        if (*end == 'U') ++end;
    }
    if (*end != 0) not_understood(line, "no number: '" + w + "'");
    if (negative) o.bits = ~o.bits + 1;
    return o;
}

class KernelParser {
  public:
    explicit KernelParser(const KernelText& text) : r_(text.text, text.line) { kernel_.name = text.name; }

    Kernel parse() {
        parse_parameters();
        parse_limits();
        r_.must("{");
        while (!(scopes_.outermost() && r_.is("}"))) parse_statement();
        return std::move(kernel_);
    }

  private:
    void parse_parameters() {
        r_.must("(");
        while (!r_.take(")")) {
            r_.must(".param");
            kernel_.parameters.push_back(parse_variable(r_));
            r_.take(",");
        }
    }

    void parse_limits() {
        while (!r_.is("{")) {
            const std::string what = r_.take();
            unsigned product = 1;
            while (!r_.is("{") && !r_.word().starts_with(".")) {
                product *= static_cast<unsigned>(r_.number());
                r_.take(",");
            }
            if (what == ".maxntid" || what == ".reqntid") kernel_.most_threads = product;
            if (what == ".reqnctapercluster") kernel_.cluster = product;
        }
    }

    void parse_registers() {
        const std::string type = r_.take().substr(1);
        do {
            const std::string name = r_.take();
            if (r_.take("<")) {
                const std::int64_t count = r_.number();
                r_.must(">");
                for (std::int64_t i = 0; i < count; ++i)
                    kernel_.registers.push_back({scopes_.declare(name + std::to_string(i)), type});
            } else {
                kernel_.registers.push_back({scopes_.declare(name), type});
            }
        } while (r_.take(","));
        r_.must(";");
    }

    void parse_statement() {
        if (r_.at_end()) not_understood(r_.line(), "a kernel without an end");
        if (r_.take("{")) {
            scopes_.open();
            declare_labels();
        } else if (r_.is("}")) {
            scopes_.close(r_.line());
            r_.next();
        } else if (r_.take(".reg")) {
            parse_registers();
        } else if (r_.take(".shared")) {
            kernel_.shared.push_back(parse_variable(r_));
            r_.must(";");
        } else if (r_.take(".local")) {
            kernel_.local.push_back(parse_variable(r_));
            r_.must(";");
        } else if (r_.is(".pragma") || r_.is(".loc") || r_.is(".file")) {
            pass_to(r_, ";");
        } else if (r_.word().starts_with(".")) {
            not_understood(r_.line(), "'" + r_.word() + "' is not understood here");
        } else {
            parse_instruction();
        }
    }

    /// A branch may come before its label: those of a scope are known when it begins.
    void declare_labels() {
        Reader ahead = r_;
        for (int depth = 1; depth > 0 && !ahead.at_end();) {
            const std::string word = ahead.take();
            if (word == "{") ++depth;
            if (word == "}") --depth;
            if (depth == 1 && ahead.is(":") && word != ";") scopes_.declare(word);
        }
    }

    void parse_instruction() {
        Instruction i;
        i.line = r_.line();
        if (r_.take("@")) {
            i.guard_is_false = r_.take("!");
            i.guard = scopes_.resolve(r_.take());
        }
        std::string word = r_.take();
        if (i.guard.empty() && r_.take(":")) {
            kernel_.labels.push_back({scopes_.resolve(word), kernel_.instructions.size()});
            return;
        }
        for (std::size_t at = 0; at <= word.size();) {
            const std::size_t dot = std::min(word.find('.', at), word.size());
            i.parts.push_back(word.substr(at, dot - at));
            at = dot + 1;
        }
        while (!r_.take(";")) {
            i.operands.push_back(parse_operand());
            if (!r_.is(";")) r_.must(",");
        }
        kernel_.instructions.push_back(std::move(i));
    }

    Operand parse_operand() {
        if (r_.take("{")) {
            Operand o{Operand::Kind::list, {}, {}, 0, 0, {}};
            while (!r_.take("}")) {
                o.members.push_back(parse_operand());
                r_.take(",");
            }
            return o;
        }
        if (r_.take("[")) return parse_address();
        if (r_.take("_")) return {};
        const bool negative = r_.take("-");
        const std::string word = r_.take();
        if (word.empty()) not_understood(r_.line(), "an operand expected");
        if (std::isdigit(static_cast<unsigned char>(word[0]))) return parse_number(word, r_.line(), negative);
        Operand o{Operand::Kind::name, scopes_.resolve(word), {}, 0, 0, {}};
        if (r_.take("|")) o.also = scopes_.resolve(r_.take());
        return o;
    }

    Operand parse_address() {
        Operand o{Operand::Kind::address, {}, {}, 0, 0, {}};
        if (std::isdigit(static_cast<unsigned char>(r_.word()[0])))
            o.bits = static_cast<std::uint64_t>(r_.number());
        else
            o.name = scopes_.resolve(r_.take());
        if (r_.take("+")) {
            const bool negative = r_.take("-");
            const auto n = static_cast<std::uint64_t>(r_.number());
            o.bits += negative ? ~n + 1 : n;
        }
        if (r_.take(",")) o.members = parse_operand().members;
        r_.must("]");
        return o;
    }

    Reader r_;
    Scopes scopes_;
    Kernel kernel_;
};

}  // namespace

ModuleText split_module(std::string_view ptx) {
    ModuleText module;
    Reader r(ptx, 1);
    while (!r.at_end()) {
        if (r.is(".version") || r.is(".target") || r.is(".address_size")) {
            const bool list = r.is(".target");
            r.next(), r.next();
            while (list && r.take(",")) r.next();
        } else if (r.take(".visible") || r.take(".extern") || r.take(".weak")) {
        } else if (r.take(".shared")) {
            module.shared.push_back(parse_variable(r));
            r.must(";");
        } else if (r.take(".entry")) {
            KernelText k{r.take(), {}, r.line()};
            const std::size_t begin = r.begin();
            while (!r.is("{")) r.next();
            std::size_t end = begin;
            int depth = 0;
            do {
                if (r.at_end()) not_understood(r.line(), "a kernel without an end");
                if (r.is("{")) ++depth;
                if (r.is("}")) --depth;
                end = r.end();
                r.next();
            } while (depth > 0);
            k.text = ptx.substr(begin, end - begin);
            module.kernels.push_back(std::move(k));
        } else {
            not_understood(r.line(), "'" + r.word() + "' is not understood by this machine");
        }
    }
    return module;
}

Kernel parse_kernel(const KernelText& text) { return KernelParser(text).parse(); }

}  // namespace soft_gpu
