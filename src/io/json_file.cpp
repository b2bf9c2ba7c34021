#include "io/json_file.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "io/mapped_file.h"

namespace tera {
namespace {

constexpr int deepest = 64;

/// "line 3, column 7" of a byte of the text.
std::string place(std::string_view text, std::size_t byte) {
    const std::string_view before = text.substr(0, std::min(byte, text.size()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    return cat("line ", line, ", column ", before.size() - start + 1);
}

std::string shortened(const std::string& text) { return text.size() <= 80 ? text : text.substr(0, 77) + "..."; }

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& where) {
    using Event = nlohmann::json::parse_event_t;
    std::vector<std::set<std::string>> keys;  // seen so far in each object that is open
    const auto check = [&](int depth, Event event, nlohmann::json& parsed) {
        if (depth > deepest) usage_error(where, ": JSON nested more than ", deepest, " deep");
        if (event == Event::object_start) keys.emplace_back();
        if (event == Event::object_end) keys.pop_back();
        if (event == Event::key && !keys.back().insert(parsed.get_ref<const std::string&>()).second) {
            usage_error(where, ": the key \"", shortened(parsed.get<std::string>()), "\" occurs twice");
        }
        return true;
    };
    try {
        return nlohmann::json::parse(text, check);
    } catch (const nlohmann::json::parse_error& e) {
        const std::size_t byte = e.byte > 0 ? e.byte - 1 : 0;
        usage_error(where, ": not valid JSON at ", place(text, byte));
    } catch (const nlohmann::json::exception&) {
        usage_error(where, ": not valid JSON (a number out of range)");
    }
}

std::string read_text_file(const std::string& path, std::uint64_t max_bytes) {
    const auto size = static_cast<std::uint64_t>(regular_file_size(path));
    if (size > max_bytes) usage_error(path, ": ", size, " bytes, more than the ", max_bytes, " such a file may have");
    const MappedFile file(path);
    const auto bytes = file.bytes();
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

nlohmann::json read_json_file(const std::string& path, std::uint64_t max_bytes) {
    return parse_json(read_text_file(path, max_bytes), path);
}

std::string json_text(const nlohmann::json& json) { return json.dump(2) + "\n"; }

JsonObject::JsonObject(const nlohmann::json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json_.is_object()) usage_error(where_, ": expected a JSON object");
}

void JsonObject::fail(const std::string& key, const std::string& what) const {
    usage_error(where_, ": \"", shortened(key), "\" ", what);
}

bool JsonObject::has(const std::string& key) const {
    const auto found = json_.find(key);
    return found != json_.end() && !found->is_null();
}

const nlohmann::json& JsonObject::value(const std::string& key) const {
    if (!has(key)) fail(key, "is missing");
    return *json_.find(key);
}

std::int64_t JsonObject::integer(const std::string& key) const {
    const nlohmann::json& v = value(key);
    const bool too_large = v.is_number_unsigned() && v.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
    if (!v.is_number_integer() || too_large) fail(key, cat("must be an integer, not ", shortened(v.dump())));
    return v.get<std::int64_t>();
}

double JsonObject::real(const std::string& key) const {
    const nlohmann::json& v = value(key);
    if (!v.is_number() || !std::isfinite(v.get<double>()))
        fail(key, cat("must be a number, not ", shortened(v.dump())));
    return v.get<double>();
}

bool JsonObject::boolean(const std::string& key) const {
    const nlohmann::json& v = value(key);
    if (!v.is_boolean()) fail(key, cat("must be true or false, not ", shortened(v.dump())));
    return v.get<bool>();
}

std::string JsonObject::text(const std::string& key) const {
    const nlohmann::json& v = value(key);
    if (!v.is_string()) fail(key, cat("must be a text, not ", shortened(v.dump())));
    return v.get<std::string>();
}

JsonObject JsonObject::object(const std::string& key) const {
    const nlohmann::json& v = value(key);
    if (!v.is_object()) fail(key, cat("must be an object, not ", shortened(v.dump())));
    return JsonObject(v, cat(where_, ": ", key));
}

std::int64_t JsonObject::integer(const std::string& key, std::int64_t otherwise) const {
    return has(key) ? integer(key) : otherwise;
}
double JsonObject::real(const std::string& key, double otherwise) const { return has(key) ? real(key) : otherwise; }
bool JsonObject::boolean(const std::string& key, bool otherwise) const { return has(key) ? boolean(key) : otherwise; }
std::string JsonObject::text(const std::string& key, const std::string& otherwise) const {
    return has(key) ? text(key) : otherwise;
}

}  // namespace tera
