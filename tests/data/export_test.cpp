#include "data/export.h"

#include <gtest/gtest.h>

#include "data/preprocess.h"
#include "data/tools_fixture.h"
#include "support/expect_usage_error.h"
#include "support/temp_folder.h"
#include "token/hf_tokenizer.h"

namespace tera {
namespace {

using Ids = std::vector<std::int32_t>;

/// One token per byte; eod is 256.
class ByteTokenizer : public Tokenizer {
  public:
    std::unique_ptr<Encoder> make_encoder() const override {
        struct ByteEncoder : Encoder {
            void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
                for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
            }
        };
        return std::make_unique<ByteEncoder>();
    }
    std::string decode(std::span<const std::int32_t> ids) const override {
        std::string out;
        for (const std::int32_t id : ids)
            out += id == 256 ? std::string("<eod>") : std::string(1, static_cast<char>(id));
        return out;
    }
    std::int64_t vocab_size() const override { return 257; }
    std::int32_t eod() const override { return 256; }
    std::string name() const override { return "bytes"; }
};

TEST(Export, IsTheInverseOfPreprocess) {
    TempFolder folder;
    const std::string lines =
        "{\"text\": \"first\\nline \xC3\xA9\"}\n{\"text\": [\"one.\", \"two \\\"x\\\"\"]}\n{\"text\": []}\n"
        "{\"text\": \"<eod> in text\"}\n";
    spill(folder / "in.jsonl", lines);
    for (const bool append_eod : {false, true}) {
        PreprocessOptions options;
        options.inputs = {folder / "in.jsonl"};
        options.output_prefix = folder / "out";
        options.append_eod = append_eod;
        const ByteTokenizer tokenizer;
        preprocess(tokenizer, options);
        const std::string first_bin = slurp(folder / "out_text_document.bin");
        const std::string first_idx = slurp(folder / "out_text_document.idx");
        std::string back;
        const ExportResult result = export_dataset(IndexedDataset(folder / "out_text_document"), &tokenizer, {},
                                                   [&](std::string_view text) { back += text; });
        EXPECT_EQ(back, lines) << append_eod;
        EXPECT_EQ(result.documents, 4);
        EXPECT_EQ(result.invalid, 0);
        options.inputs = {folder / "back.jsonl"};
        spill(options.inputs[0], back);
        preprocess(tokenizer, options);
        EXPECT_EQ(slurp(folder / "out_text_document.bin"), first_bin);
        EXPECT_EQ(slurp(folder / "out_text_document.idx"), first_idx);
    }
}

class ExportForms : public ::testing::Test {
  protected:
    ExportForms() { write_corpus(folder_ / "x", {Ids{'a', 'b', 256}, Ids{'c'}, Ids{0xC3}}); }
    std::string run(const ExportOptions& options) {
        const ByteTokenizer tokenizer;
        std::string out;
        result_ =
            export_dataset(IndexedDataset(folder_ / "x"), options.format == ExportFormat::ids ? nullptr : &tokenizer,
                           options, [&](std::string_view text) { out += text; });
        return out;
    }
    TempFolder folder_;
    ExportResult result_;
};

// Llama 2 puts <s> before every text and BERT [CLS] and [SEP] around it.
TEST(Export, LeavesOutWhatThePostProcessorAdds) {
    TempFolder folder;
    const std::string lines =
        "{\"text\": \"the fox\"}\n{\"text\": [\"the\", \"fox the\"]}\n{\"text\": \"the <s> fox\"}\n";
    spill(folder / "in.jsonl", lines);
    for (const char* name : {"llama2", "bert"}) {
        const auto tokenizer = load_hugging_face_tokenizer(std::string(TERA_SOURCE_DIR) + "/tests/golden/hf/" + name);
        ASSERT_FALSE(tokenizer->ids_before().empty()) << name;
        for (const bool append_eod : {false, true}) {
            PreprocessOptions options;
            options.inputs = {folder / "in.jsonl"};
            options.output_prefix = folder / "out";
            options.append_eod = append_eod;
            preprocess(*tokenizer, options);
            const std::string first = slurp(folder / "out_text_document.bin");
            std::string back;
            export_dataset(IndexedDataset(folder / "out_text_document"), tokenizer.get(), {},
                           [&](std::string_view text) { back += text; });
            EXPECT_EQ(back.substr(0, 20), lines.substr(0, 20)) << name;
            options.inputs = {folder / "back.jsonl"};
            spill(options.inputs[0], back);
            preprocess(*tokenizer, options);
            EXPECT_TRUE(slurp(folder / "out_text_document.bin") == first) << name << append_eod << "\n" << back;
        }
    }
}

TEST_F(ExportForms, TextIdsAndRanges) {
    ExportOptions options;
    options.count = 2;
    options.format = ExportFormat::text;
    EXPECT_EQ(run(options), "ab\n\nc\n\n");
    options.keep_eod = true;
    EXPECT_EQ(run(options), "ab<eod>\n\nc\n\n");
    options.format = ExportFormat::ids;
    EXPECT_EQ(run(options), "{\"ids\": [[97, 98, 256]]}\n{\"ids\": [[99]]}\n");
    options.first = 1;
    options.format = ExportFormat::jsonl;
    options.key = "say \"it\"";
    options.count = -1;
    EXPECT_EQ(run(options), "{\"say \\\"it\\\"\": \"c\"}\n{\"say \\\"it\\\"\": \"\xEF\xBF\xBD\"}\n");
    EXPECT_EQ(result_.invalid, 1);
    EXPECT_EQ(result_.tokens, 2);
    options.first = 4;
    expect_usage_error([&] { run(options); }, {"--first 4", "3 documents"});
}

TEST_F(ExportForms, RefusesIdsThatTheTokenizerDoesNotHave) {
    write_corpus(folder_ / "x", {Ids{'a'}, Ids{257}});
    expect_usage_error([&] { run({}); }, {"x: document 1", "257", "vocabulary"});
}

}  // namespace
}  // namespace tera
