#include "token/post_processor.h"

#include <limits>

#include "core/error.h"

namespace tera {

namespace {

std::int32_t checked_id(const nlohmann::json& json, const JsonObject& where) {
    if (!json.is_number_integer() || json.get<std::int64_t>() < 0 ||
        json.get<std::int64_t>() > std::numeric_limits<std::int32_t>::max())
        usage_error(where.where(), ": the post-processor has an id that is none");
    return json.get<std::int32_t>();
}

PostProcessor make_template(const JsonObject& json) {
    PostProcessor result;
    const auto& single = json.value("single");
    if (!single.is_array()) json.fail("single", "must be a list");
    int texts = 0;
    for (const auto& part : single) {
        const JsonObject piece(part, json.where() + ": single");
        if (piece.has("Sequence")) {
            if (piece.object("Sequence").text("id") != "A")
                usage_error(piece.where(), ": a second text is not supported");
            ++texts;
            continue;
        }
        const std::string name = piece.object("SpecialToken").text("id");
        const auto& ids = json.object("special_tokens").object(name).value("ids");
        if (!ids.is_array()) usage_error(json.where(), ": the ids of \"", name, "\" must be a list");
        for (const auto& id : ids) (texts == 0 ? result.before : result.after).push_back(checked_id(id, json));
    }
    if (texts != 1) usage_error(json.where(), ": a template with the text ", texts, " times is not supported");
    return result;
}

/// BERT's and RoBERTa's: "cls": ["[CLS]", 101], "sep": ["[SEP]", 102].
PostProcessor make_pair(const JsonObject& json) {
    const auto id = [&json](const std::string& key) {
        const auto& pair = json.value(key);
        if (!pair.is_array() || pair.size() != 2) json.fail(key, "must be a token and its id");
        return checked_id(pair[1], json);
    };
    return {{id("cls")}, {id("sep")}};
}

PostProcessor make_post_processor(const JsonObject& json, int depth) {
    const std::string type = json.text("type");
    if (type == "TemplateProcessing") return make_template(json);
    if (type == "BertProcessing" || type == "RobertaProcessing") return make_pair(json);
    if (type == "ByteLevel") return {};
    if (type != "Sequence")
        usage_error(json.where(), ": post-processor \"", type,
                    "\" is not supported; known are TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel "
                    "and Sequence");
    if (depth > 8) usage_error(json.where(), ": post-processors nested more than 8 deep");
    const auto& parts = json.value("processors");
    if (!parts.is_array()) json.fail("processors", "must be a list");
    PostProcessor result;
    for (const auto& part : parts) {
        PostProcessor next = make_post_processor(JsonObject(part, json.where()), depth + 1);
        if (next.before.empty() && next.after.empty()) continue;
        if (!result.before.empty() || !result.after.empty())
            usage_error(json.where(), ": two post-processors that add tokens are not supported");
        result = std::move(next);
    }
    return result;
}

}  // namespace

PostProcessor make_post_processor(const JsonObject& json) { return make_post_processor(json, 0); }

}  // namespace tera
