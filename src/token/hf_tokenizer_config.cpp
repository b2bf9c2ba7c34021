#include "token/hf_tokenizer_config.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "token/tokenizer_json.h"

namespace tera {

namespace {

using nlohmann::json;

/// A special token, written as text or with its properties.
std::optional<AddedToken> special_token(const json& value, const std::string& where) {
    if (value.is_string()) {
        AddedToken token;
        token.content = value.get<std::string>();
        token.special = true;
        token.normalized = false;
        return token;
    }
    if (!value.is_object()) return std::nullopt;
    AddedToken token = parse_added_token(JsonObject(value, where));
    token.special = true;
    return token;
}

class ConfigReader {
  public:
    explicit ConfigReader(std::string folder) : folder_(std::move(folder)) {}

    HfTokenizerConfig read() {
        config_ = read_file("tokenizer_config.json");
        const std::string where = folder_ + "/tokenizer_config.json";
        if (config_.contains("added_tokens_decoder")) {
            read_listed(config_["added_tokens_decoder"], where);
            (void)read_file("special_tokens_map.json");
        } else {
            const json legacy = read_file("special_tokens_map.json");
            for (const auto& [key, value] : legacy.items()) config_[key] = value;
            read_added_file();
        }
        if (config_.contains("tokenizer_class") && config_["tokenizer_class"].is_string())
            result_.tokenizer_class = config_["tokenizer_class"].get<std::string>();
        result_.split_special_tokens = JsonObject(config_, where).boolean("split_special_tokens", false);
        read_named(where);
        read_extra(where);
        if (result_.eos.empty()) read_generation_config();
        return std::move(result_);
    }

  private:
    /// The object in the file; empty if there is no such file.
    json read_file(const std::string& name) {
        const std::filesystem::path path = std::filesystem::path(folder_) / name;
        if (!std::filesystem::exists(path)) return json::object();
        std::string bytes = read_text_file(path.string(), std::uint64_t{64} << 20);
        json parsed = parse_json(bytes, path.string());
        if (!parsed.is_object()) usage_error(path.string(), ": must be an object");
        if (name != "generation_config.json") result_.files.push_back({name, std::move(bytes)});
        return parsed;
    }

    void read_listed(const json& list, const std::string& where) {
        if (!list.is_object()) usage_error(where, ": added_tokens_decoder must be an object");
        std::map<std::int64_t, AddedToken> by_id;
        for (const auto& [key, value] : list.items()) {
            AddedToken token = parse_added_token(JsonObject(value, where + ": added_tokens_decoder"));
            const bool is_number = !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == key.npos;
            if (!is_number) usage_error(where, ": added_tokens_decoder: \"", key, "\" is no id");
            by_id[std::stoll(key)] = std::move(token);
        }
        for (auto& [id, token] : by_id) result_.listed_tokens.push_back(std::move(token));
    }

    /// added_tokens.json of before 2023: token and id.
    void read_added_file() {
        std::map<std::int64_t, AddedToken> by_id;
        const json added = read_file("added_tokens.json");
        for (const auto& [content, id] : added.items()) {
            if (!id.is_number_integer()) usage_error(folder_, "/added_tokens.json: \"", content, "\" has no id");
            AddedToken token;
            token.content = content;
            token.special = std::any_of(config_.begin(), config_.end(),
                                        [&](const json& value) { return value.is_string() && value == token.content; });
            token.normalized = !token.special;
            by_id[id.get<std::int64_t>()] = token;
        }
        for (auto& [id, token] : by_id) result_.listed_tokens.push_back(std::move(token));
    }

    void read_named(const std::string& where) {
        const std::pair<const char*, std::string*> named[] = {{"bos_token", &result_.bos},  {"eos_token", &result_.eos},
                                                              {"unk_token", &result_.unk},  {"sep_token", &result_.sep},
                                                              {"pad_token", &result_.pad},  {"cls_token", &result_.cls},
                                                              {"mask_token", &result_.mask}};
        for (const auto& [key, content] : named) {
            if (!config_.contains(key)) continue;
            const auto token = special_token(config_[key], where);
            if (!token) continue;
            *content = token->content;
            result_.special_tokens.push_back(*token);
        }
        for (const auto& [key, value] : config_.items()) {
            const bool is_named = std::any_of(std::begin(named), std::end(named),
                                              [&key = key](const auto& entry) { return key == entry.first; });
            if (is_named || !key.ends_with("_token") || !value.is_string()) continue;
            result_.special_tokens.push_back(*special_token(value, where));
        }
    }

    void read_extra(const std::string& where) {
        const char* key = config_.contains("extra_special_tokens") && !config_["extra_special_tokens"].empty()
                              ? "extra_special_tokens"
                              : "additional_special_tokens";
        if (!config_.contains(key)) return;
        for (const json& value : config_[key]) {
            const auto token = special_token(value, where);
            if (token) result_.special_tokens.push_back(*token);
        }
    }

    void read_generation_config() {
        const json generation = read_file("generation_config.json");
        if (!generation.contains("eos_token_id")) return;
        const json& value = generation["eos_token_id"];
        const json& id = value.is_array() && !value.empty() ? value[0] : value;
        if (id.is_number_integer() && id.get<std::int64_t>() >= 0 && id.get<std::int64_t>() < std::int64_t{1} << 24)
            result_.eos_id = id.get<std::int32_t>();
    }

    std::string folder_;
    json config_;
    HfTokenizerConfig result_;
};

}  // namespace

HfTokenizerConfig read_hf_tokenizer_config(const std::string& folder) { return ConfigReader(folder).read(); }

}  // namespace tera
