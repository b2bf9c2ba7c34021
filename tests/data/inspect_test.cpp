#include "data/inspect.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/tools_fixture.h"
#include "support/expect_usage_error.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

using Ids = std::vector<std::int32_t>;

TEST(LengthCounter, TakesPercentilesExactly) {
    LengthCounter counter;
    for (int i = 1; i <= 100; ++i) counter.add(i * 1000);  // below and above where counting changes to a map
    const LengthStatistics s = counter.statistics();
    EXPECT_EQ(s.min, 1000);
    EXPECT_EQ(s.median, 50000);
    EXPECT_EQ(s.p90, 90000);
    EXPECT_EQ(s.p99, 99000);
    EXPECT_EQ(s.max, 100000);
    EXPECT_EQ(s.mean, 50500);
    EXPECT_EQ(s.histogram[10], 1);   // 1000 is in 512..1023
    EXPECT_EQ(s.histogram[17], 35);  // 65536 and above: 66000 to 100000
    EXPECT_EQ(LengthCounter().statistics().count, 0);
}

TEST(Inspect, CountsWhatIsThere) {
    TempFolder folder;
    IndexedDatasetWriter writer(folder / "x", TokenType::u16);
    writer.add_document(Ids{5, 6, 7, 2}, Ids{3, 1});
    writer.add_document({}, {});
    writer.add_document(Ids{5}, Ids{1});
    writer.finish();
    InspectOptions options;
    options.check = true;
    options.vocab_size = 8;
    options.eod = 2;
    const Inspection found = inspect_dataset(folder / "x", options);
    EXPECT_EQ(found.documents, 3);
    EXPECT_EQ(found.sequences, 3);
    EXPECT_EQ(found.tokens, 5);
    EXPECT_EQ(found.bin_bytes, 10);
    EXPECT_EQ(found.document_lengths.zeros, 1);
    EXPECT_EQ(found.document_lengths.max, 4);
    EXPECT_EQ(found.sequence_lengths.max, 3);
    EXPECT_EQ(found.document_lengths.histogram, (std::vector<std::int64_t>{1, 1, 0, 1}));
    EXPECT_EQ(found.check->min_id, 2);
    EXPECT_EQ(found.check->max_id, 7);
    EXPECT_EQ(found.check->different_ids, 4);
    EXPECT_EQ(found.check->documents_ending_in_eod, 1);
    const nlohmann::json json = inspection_json(found);
    EXPECT_EQ(json["dtype"], "uint16");
    EXPECT_EQ(json["document_lengths"]["histogram"][2], (nlohmann::json{{"from", 4}, {"to", 7}, {"count", 1}}));
    EXPECT_NE(inspection_text(found).find("documents  3 (1 empty)"), std::string::npos) << inspection_text(found);
}

TEST(Inspect, FindsDamage) {
    TempFolder folder;
    write_corpus(folder / "x", {Ids{1, 2}, Ids{70000, 4}}, TokenType::i32);
    InspectOptions options;
    options.check = true;
    EXPECT_EQ(inspect_dataset(folder / "x", options).check->max_id, 70000);
    options.vocab_size = 70000;
    expect_usage_error([&] { inspect_dataset(folder / "x", options); },
                       {"x.bin", "sequence 1", "token 0", "70000", "vocabulary"});
    options.vocab_size = 0;
    const std::string bin = slurp(folder / "x.bin");
    spill(folder / "x.bin", bin + "y");
    expect_usage_error([&] { inspect_dataset(folder / "x", options); }, {"17 bytes", "16"});
    EXPECT_NO_THROW(inspect_dataset(folder / "x"));  // Megatron reads it too
    spill(folder / "x.bin", bin.substr(0, 12) + "\xff\xff\xff\xff");
    expect_usage_error([&] { inspect_dataset(folder / "x", options); }, {"sequence 1", "token 1", "negative"});
    spill(folder / "x.bin", bin.substr(0, 15));
    expect_usage_error([&] { inspect_dataset(folder / "x"); }, {"15 bytes"});
}

TEST(Inspect, HoldsForAnEmptyPair) {
    TempFolder folder;
    write_corpus(folder / "x", {});
    InspectOptions options;
    options.check = true;
    const Inspection found = inspect_dataset(folder / "x", options);
    EXPECT_EQ(found.check->max_id, -1);
    EXPECT_EQ(found.idx_bytes, 42);
    EXPECT_FALSE(inspection_text(found).empty());
    EXPECT_EQ(inspection_json(found)["tokens"], 0);
}

}  // namespace
}  // namespace tera
