#include "config/fields.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"

namespace tera {
namespace {

template <class... F>
struct Overload : F... {
    using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

std::string dest_of(const std::string& name) {
    std::string dest = name;
    std::replace(dest.begin(), dest.end(), '-', '_');
    return dest;
}

ArgType type_of(const Member& member) {
    return std::visit(
        Overload{[](std::monostate) { return ArgType::text; }, [](bool RunConfig::*) { return ArgType::boolean; },
                 [](int64_t RunConfig::*) { return ArgType::integer; },
                 [](std::optional<int64_t> RunConfig::*) { return ArgType::integer; },
                 [](std::vector<int64_t> RunConfig::*) { return ArgType::integer; },
                 [](double RunConfig::*) { return ArgType::real; },
                 [](std::optional<double> RunConfig::*) { return ArgType::real; },
                 [](std::string RunConfig::*) { return ArgType::text; },
                 [](std::vector<std::string> RunConfig::*) { return ArgType::text; }},
        member);
}

bool is_list(const Member& member) {
    return std::holds_alternative<std::vector<int64_t> RunConfig::*>(member) ||
           std::holds_alternative<std::vector<std::string> RunConfig::*>(member);
}

/// Reads the notation of UnboundFlag into the field.
void read_signature(const std::string& signature, Field& field) {
    std::string rest = signature;
    if (const size_t arrow = rest.find(" > "); arrow != std::string::npos) {
        field.dest = rest.substr(arrow + 3);
        rest.erase(arrow);
    }
    const char kind = rest[0];
    rest.erase(0, 1);
    if (kind == 'T' || kind == 'F') {
        field.type = ArgType::boolean;
        field.count = ArgCount::none();
        field.switch_value = kind == 'T';
        field.default_text = kind == 'T' ? "False" : "True";
        if (kind == 'F') field.dest = rest.substr(1);
        if (kind == 'T' && rest == "=None") {
            field.none_when_false = true;
            field.default_text = "None";
        }
        return;
    }
    if (kind == '?') {
        field.untyped = true;
        field.count = ArgCount::any();
        field.default_text = "None";
        return;
    }
    field.type = kind == 'i' ? ArgType::integer : kind == 'f' ? ArgType::real : ArgType::text;
    if (!rest.empty() && rest[0] == '{') {
        std::string choice;
        for (const char c : rest.substr(1, rest.find('}') - 1)) {
            if (c == '|')
                field.choices.push_back(choice), choice.clear();
            else
                choice += c;
        }
        field.choices.push_back(choice);
        rest.erase(0, rest.find('}') + 1);
    }
    if (!rest.empty() && rest[0] == '*') field.count = ArgCount::any(), rest.erase(0, 1);
    if (!rest.empty() && rest[0] == '+') field.count = ArgCount::one_or_more(), rest.erase(0, 1);
    field.default_text = rest.empty() ? "None" : rest.substr(1);
}

std::string quoted(const std::string& text) {
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\') out += '\\';
        out += c;
    }
    return out + "'";
}

template <class T, class Show>
std::string python_list(const std::vector<T>& values, Show show) {
    std::string out = "[";
    for (size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + show(values[i]);
    return out + "]";
}

/// Text of a value without a member, normalised so that 1e-1 and 0.1 compare equal.
std::string unbound_text(const Field& field, const std::vector<std::string>& values) {
    const auto one = [&](const std::string& value) -> std::string {
        if (field.type == ArgType::integer) return std::to_string(parse_integer(value, "--" + field.names[0]));
        if (field.type == ArgType::real) return python_real(parse_real(value, "--" + field.names[0]));
        if (field.type == ArgType::boolean) return value == "true" ? "True" : "False";
        return value;
    };
    if (!field.count.many()) return values.empty() ? "None" : one(values[0]);
    return python_list(
        values, [&](const std::string& value) { return field.type == ArgType::text ? quoted(value) : one(value); });
}

}  // namespace

void FieldList::group(const std::string& title, ResumeRule resume) {
    group_ = title;
    resume_ = resume;
}

Field& FieldList::add(const std::string& name, Member member, const std::string& help) {
    Field& field = fields_.emplace_back();
    field.names = {name};
    field.dest = dest_of(name);
    field.member = member;
    field.type = type_of(member);
    if (field.type == ArgType::boolean) field.count = ArgCount::none();
    if (is_list(member)) field.count = ArgCount::any();
    field.group = group_;
    field.help = help;
    field.resume = resume_;
    return field;
}

void FieldList::unbound(FlagStatus status, const std::string& reason, std::initializer_list<UnboundFlag> flags,
                        bool core) {
    for (const UnboundFlag& flag : flags) {
        Field& field = add(flag.name, {}, "");
        read_signature(flag.signature, field);
        field.status = status;
        field.reason = reason;
        field.secondary = !core;
    }
}

const std::vector<Field>& fields() {
    static const std::vector<Field> list = [] {
        FieldList building;
        add_model_fields(building);
        add_training_fields(building);
        add_checkpoint_fields(building);
        add_parallel_fields(building);
        add_data_fields(building);
        add_logging_fields(building);
        add_unbuilt_fields(building);
        add_newer_fields(building);
        return building.take();
    }();
    return list;
}

const char* flag_status_name(FlagStatus status) {
    switch (status) {
        case FlagStatus::implemented:
            return "implemented";
        case FlagStatus::inert:
            return "no effect";
        case FlagStatus::later:
            return "later";
        case FlagStatus::refused:
            return "refused";
    }
    return "";
}

void assign_field(RunConfig& config, const Field& field, const std::vector<std::string>& values) {
    const std::string flag = "--" + field.names[0];
    const auto first = [&]() -> const std::string& {
        TERA_CHECK(!values.empty(), "no value for ", flag);
        return values[0];
    };
    std::visit(Overload{[&](std::monostate) {
                            config.inert[field.dest] = field.untyped ? "given" : unbound_text(field, values);
                        },
                        [&](bool RunConfig::*m) { config.*m = first() == "true"; },
                        [&](int64_t RunConfig::*m) { config.*m = parse_integer(first(), flag); },
                        [&](std::optional<int64_t> RunConfig::*m) { config.*m = parse_integer(first(), flag); },
                        [&](double RunConfig::*m) { config.*m = parse_real(first(), flag); },
                        [&](std::optional<double> RunConfig::*m) { config.*m = parse_real(first(), flag); },
                        [&](std::string RunConfig::*m) { config.*m = first(); },
                        [&](std::vector<std::string> RunConfig::*m) { config.*m = values; },
                        [&](std::vector<int64_t> RunConfig::*m) {
                            (config.*m).clear();
                            for (const std::string& value : values) (config.*m).push_back(parse_integer(value, flag));
                        }},
               field.member);
    config.given.insert(field.dest);
}

std::string python_real(double value) {
    if (value != value) return "nan";
    if (value == 1.0 / 0.0) return "inf";
    if (value == -1.0 / 0.0) return "-inf";
    if (value == 0) return 1 / value < 0 ? "-0.0" : "0.0";
    char buffer[64];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
    const std::string text(buffer, end);
    const size_t e = text.find('e');
    const int exponent = std::stoi(text.substr(e + 1));
    const auto format = exponent < -4 || exponent >= 16 ? std::chars_format::scientific : std::chars_format::fixed;
    std::string out(buffer, std::to_chars(buffer, buffer + sizeof buffer, value, format).ptr);
    if (format == std::chars_format::fixed && out.find('.') == std::string::npos) out += ".0";
    return out;
}

std::string python_text(const RunConfig& config, const Field& field) {
    const bool untouched = config.given.count(field.dest) == 0;
    if (untouched && !field.default_text.empty() && is_default(config, field)) return field.default_text;
    const auto number = [](int64_t value) { return std::to_string(value); };
    const auto boolean = [&](bool value) {
        return value ? "True" : field.none_when_false && untouched ? "None" : "False";
    };
    return std::visit(
        Overload{[&](std::monostate) -> std::string {
                     const auto it = config.inert.find(field.dest);
                     if (it != config.inert.end()) return it->second;
                     return field.none_when_false ? "None" : field.default_text;
                 },
                 [&](bool RunConfig::*m) -> std::string { return boolean(config.*m); },
                 [&](int64_t RunConfig::*m) -> std::string {
                     // A size whose default is "to be derived" is 0 until it is given or derived.
                     return config.*m == 0 && RunConfig{}.*m == 0 && untouched && field.default_text.empty()
                                ? "None"
                                : number(config.*m);
                 },
                 [&](std::optional<int64_t> RunConfig::*m) { return config.*m ? number(*(config.*m)) : "None"; },
                 [&](double RunConfig::*m) { return python_real(config.*m); },
                 [&](std::optional<double> RunConfig::*m) { return config.*m ? python_real(*(config.*m)) : "None"; },
                 [&](std::string RunConfig::*m) -> std::string {
                     return (config.*m).empty() && untouched ? "None" : config.*m;
                 },
                 [&](std::vector<std::string> RunConfig::*m) -> std::string {
                     return (config.*m).empty() && untouched ? "None" : python_list(config.*m, quoted);
                 },
                 [&](std::vector<int64_t> RunConfig::*m) -> std::string {
                     return (config.*m).empty() && untouched ? "None" : python_list(config.*m, number);
                 }},
        field.member);
}

bool is_default(const RunConfig& config, const Field& field) {
    static const RunConfig untouched;
    return std::visit(Overload{[&](std::monostate) {
                                   const auto it = config.inert.find(field.dest);
                                   if (it == config.inert.end()) return true;
                                   if (field.untyped) return false;
                                   if (field.none_when_false && it->second == "False") return true;
                                   if (it->second == field.default_text) return true;
                                   // "1" and "1.0" are the same default of a float flag.
                                   if (field.type != ArgType::real || field.default_text == "None") return false;
                                   return parse_real(it->second, "") == parse_real(field.default_text, "");
                               },
                               [&](auto m) { return config.*m == untouched.*m; }},
                      field.member);
}

}  // namespace tera
