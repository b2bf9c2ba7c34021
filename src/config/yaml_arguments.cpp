#include "config/yaml_arguments.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>

#include "config/fields.h"
#include "core/error.h"

namespace tera {
namespace {

std::string normalised(std::string name) {
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

/// The field a key names, by flag name first and then by destination. `by_dest`: the key is the positive value.
const Field* find_field(const std::string& key, bool& by_dest) {
    const std::string wanted = normalised(key);
    for (const Field& field : fields()) {
        by_dest = false;
        for (const std::string& name : field.names) {
            if (normalised(name) == wanted) return &field;
        }
    }
    by_dest = true;
    for (const Field& field : fields()) {
        if (field.dest == wanted) return &field;
    }
    return nullptr;
}

bool parse_boolean(const std::string& text, const std::string& where) {
    std::string lower = text;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    if (lower == "true" || lower == "yes" || lower == "on") return true;
    if (lower == "false" || lower == "no" || lower == "off") return false;
    usage_error(where, ": '", text, "' is not true or false");
}

void check_scalar(const Field& field, const std::string& value, const std::string& where) {
    if (field.type == ArgType::integer) parse_integer(value, where);
    if (field.type == ArgType::real) parse_real(value, where);
    if (field.choices.empty()) return;
    if (std::find(field.choices.begin(), field.choices.end(), value) != field.choices.end()) return;
    std::string all;
    for (const std::string& choice : field.choices) all += (all.empty() ? "" : ", ") + choice;
    usage_error(where, ": '", value, "' is not one of ", all);
}

/// The scalars of a value: one, or those of a list; a single text for a list-valued flag is split at spaces.
std::vector<std::string> scalars(const YAML::Node& node, const Field& field, const std::string& where) {
    std::vector<std::string> values;
    if (node.IsScalar()) {
        values = {node.Scalar()};
        if (field.count.many()) {
            values.clear();
            std::istringstream words(node.Scalar());
            for (std::string word; words >> word;) values.push_back(word);
        }
    } else if (node.IsSequence() && field.count.many()) {
        for (const YAML::Node& item : node) {
            if (!item.IsScalar()) usage_error(where, ": expected a list of plain values");
            values.push_back(item.Scalar());
        }
    } else {
        usage_error(where, ": expected ", field.count.many() ? "a value or a list" : "one value");
    }
    const int n = static_cast<int>(values.size());
    if (n < field.count.min || (field.count.max > 0 && n > field.count.max)) {
        usage_error(where, ": ", n, " values are too ", n < field.count.min ? "few" : "many");
    }
    return values;
}

std::vector<std::string> known_names() {
    std::vector<std::string> names;
    for (const Field& field : fields()) {
        for (const std::string& name : field.names) names.push_back(normalised(name));
        names.push_back(field.dest);
    }
    return names;
}

}  // namespace

std::map<std::string, std::vector<std::string>> read_yaml_arguments(const std::string& path) {
    std::error_code unreadable;  // said below
    if (std::filesystem::is_directory(path, unreadable))
        usage_error("--config ", path, " is a folder; give the YAML file in it that is meant");
    YAML::Node root;
    try {
        root = YAML::LoadFile(path);
    } catch (const YAML::BadFile&) {
        usage_error("cannot read the configuration file ", path, " (given with --config)");
    } catch (const YAML::Exception& error) {
        usage_error(path, " line ", error.mark.line + 1, ": ", error.msg);
    }
    if (root.IsNull()) return {};
    if (!root.IsMap()) usage_error(path, ": expected `name: value` lines with the names of the flags");
    std::map<std::string, std::vector<std::string>> values;
    for (const auto& entry : root) {
        const std::string at = cat(path, " line ", entry.first.Mark().line + 1);
        if (!entry.first.IsScalar()) usage_error(at, ": expected a flag name");
        const std::string key = entry.first.Scalar();
        const std::string where = cat(at, ": ", key);
        bool by_dest = false;
        const Field* field = find_field(key, by_dest);
        if (field == nullptr) {
            const std::string near = nearest_name(normalised(key), known_names());
            usage_error(at, ": unknown flag '", key, "'", near.empty() ? "" : "; did you mean " + near + "?");
        }
        if (field->dest == "config") usage_error(where, ": a configuration file cannot name another one");
        if (values.count(field->dest) != 0) usage_error(where, ": given twice");
        if (entry.second.IsNull()) continue;
        std::vector<std::string> given = field->type == ArgType::boolean && entry.second.IsScalar()
                                             ? std::vector<std::string>{entry.second.Scalar()}
                                             : scalars(entry.second, *field, where);
        if (field->type == ArgType::boolean) {
            // A negative switch by its own name: true switches it on, that is, clears its value.
            const bool flip = !by_dest && !field->switch_value;
            given = {parse_boolean(given[0], where) != flip ? "true" : "false"};
        } else {
            for (const std::string& value : given) check_scalar(*field, value, where);
        }
        values[field->dest] = given;
    }
    return values;
}

}  // namespace tera
