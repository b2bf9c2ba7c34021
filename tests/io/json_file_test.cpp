#include "io/json_file.h"

#include <gtest/gtest.h>

#include <bit>

#include "io/durable_file.h"
#include "support/expect_usage_error.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

TEST(JsonFile, ErrorsNameFileAndPlace) {
    expect_usage_error([] { parse_json("{\n  \"a\": tru }", "x.json"); }, {"x.json", "line 2, column 11"});
    expect_usage_error([] { parse_json("", "x.json"); }, {"x.json", "line 1"});
    expect_usage_error([] { parse_json("{\"a\": 1, \"a\": 2}", "x.json"); }, {"\"a\" occurs twice"});
    expect_usage_error([] { parse_json(std::string(100, '[') + std::string(100, ']'), "x.json"); }, {"nested"});
    expect_usage_error([] { parse_json("{\"\xff\": 1}", "x.json"); }, {"x.json"});
    expect_usage_error([] { parse_json("[1e999]", "x.json"); }, {"x.json"});
    EXPECT_EQ(parse_json("{\"a\": {\"b\": 1}, \"b\": 1}", "x.json")["a"]["b"], 1);

    TempFolder folder;
    expect_usage_error([&] { read_json_file(folder / "absent.json"); }, {"absent.json"});
    write_file_durably(folder / "big.json", std::string(100, ' '));
    expect_usage_error([&] { read_json_file(folder / "big.json", 50); }, {"big.json", "100 bytes"});
}

TEST(JsonFile, ChecksTypes) {
    const auto json = parse_json(
        R"({"i": 3, "r": 1.5, "b": true, "t": "x", "o": {"k": 1}, "n": null, "u": 18446744073709551615})", "f");
    const JsonObject object(json, "f");
    EXPECT_EQ(object.integer("i"), 3);
    EXPECT_EQ(object.real("i"), 3.0);
    EXPECT_EQ(object.real("r"), 1.5);
    EXPECT_TRUE(object.boolean("b"));
    EXPECT_EQ(object.text("t"), "x");
    EXPECT_EQ(object.object("o").integer("k"), 1);
    EXPECT_FALSE(object.has("n"));
    EXPECT_EQ(object.integer("n", 7), 7);
    expect_usage_error([&] { object.integer("r"); }, {"f", "\"r\"", "integer", "1.5"});
    expect_usage_error([&] { object.integer("u"); }, {"\"u\""});
    expect_usage_error([&] { object.integer("missing"); }, {"\"missing\"", "missing"});
    expect_usage_error([&] { object.boolean("i"); }, {"true or false"});
    expect_usage_error([&] { object.text("i", "y"); }, {"text"});
    expect_usage_error([&] { object.object("o").text("k"); }, {"f: o", "\"k\""});
    expect_usage_error([&] { JsonObject(json["i"], "f"); }, {"object"});
}

TEST(JsonFile, DoublesKeepTheirBits) {
    for (const double x : {0.1, 1.0 / 3, 6.02e23, 5e-324, 0.00014999999999999999, -0.0, 4294967296.0}) {
        const double back = parse_json(json_text({{"x", x}}), "x")["x"].get<double>();
        EXPECT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(x)) << x;
    }
}

}  // namespace
}  // namespace tera
