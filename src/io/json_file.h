// JSON files with errors a user can act on: one line that names the file, the place and the key.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tera {

/// Parses text; `where` names it in errors. Refuses invalid UTF-8, two equal keys in one object and nesting beyond 64.
nlohmann::json parse_json(std::string_view text, const std::string& where);

/// UsageError if the file is missing, unreadable, larger than `max_bytes` or not JSON.
nlohmann::json read_json_file(const std::string& path, std::uint64_t max_bytes = std::uint64_t{256} << 20);

/// The file's bytes. UsageError if it is missing, unreadable or larger than max_bytes.
std::string read_text_file(const std::string& path, std::uint64_t max_bytes = std::uint64_t{256} << 20);

/// Indented by two, keys in order, newline at the end. Every double reads back as the same bits.
std::string json_text(const nlohmann::json& json);

/// Reads the members of an object, checked. The JSON must outlive it.
class JsonObject {
  public:
    /// `where`: the file, and the path of keys within it.
    JsonObject(const nlohmann::json& json, std::string where);

    /// True if the key is there and not null.
    bool has(const std::string& key) const;
    std::int64_t integer(const std::string& key) const;
    double real(const std::string& key) const;
    bool boolean(const std::string& key) const;
    std::string text(const std::string& key) const;
    JsonObject object(const std::string& key) const;
    const nlohmann::json& value(const std::string& key) const;

    std::int64_t integer(const std::string& key, std::int64_t otherwise) const;
    double real(const std::string& key, double otherwise) const;
    bool boolean(const std::string& key, bool otherwise) const;
    std::string text(const std::string& key, const std::string& otherwise) const;

    const nlohmann::json& json() const { return json_; }
    const std::string& where() const { return where_; }
    [[noreturn]] void fail(const std::string& key, const std::string& what) const;

  private:
    const nlohmann::json& json_;
    std::string where_;
};

}  // namespace tera
