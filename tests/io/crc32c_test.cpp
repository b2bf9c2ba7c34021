#include "io/crc32c.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace tera {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// RFC 3720, appendix B.4.
TEST(Crc32c, KnownValues) {
    EXPECT_EQ(crc32c(0, bytes_of("123456789")), 0xe3069283u);
    EXPECT_EQ(crc32c(0, bytes_of(std::string(32, '\0'))), 0x8a9136aau);
    EXPECT_EQ(crc32c(0, bytes_of(std::string(32, '\xff'))), 0x62a8ab43u);
    std::string rising(32, '\0');
    std::iota(rising.begin(), rising.end(), '\0');
    EXPECT_EQ(crc32c(0, bytes_of(rising)), 0x46dd794eu);
    EXPECT_EQ(crc32c(0, {}), 0u);
    EXPECT_EQ(crc32c_text(0xbadcafeu), "0badcafe");
}

TEST(Crc32c, ContinuesAndCombines) {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 37 + i / 7);
    const std::uint32_t whole = crc32c(0, bytes_of(text));
    for (const std::size_t cut : {0, 1, 7, 8, 9, 500, 999, 1000}) {
        const std::uint32_t a = crc32c(0, bytes_of(text).first(cut)), b = crc32c(0, bytes_of(text).subspan(cut));
        EXPECT_EQ(crc32c(a, bytes_of(text).subspan(cut)), whole);
        EXPECT_EQ(crc32c_combine(a, b, 1000 - cut), whole);
    }
    // A length that needs more than 32 bits of bytes: adding zeros in two steps is adding them in one.
    const std::uint64_t many = std::uint64_t{5} << 33;
    const std::uint32_t once = crc32c_combine(whole, 0, 2 * many);
    EXPECT_EQ(crc32c_combine(crc32c_combine(whole, 0, many), 0, many), once);
}

TEST(Crc32c, RangesInAnyOrder) {
    const std::string text = "the quick brown fox jumps over the lazy dog";
    const auto bytes = bytes_of(text);
    RangeChecksum sum;
    sum.add(20, bytes.subspan(20));
    EXPECT_FALSE(sum.covers(text.size()));
    sum.add(0, bytes.first(5));
    sum.add(5, bytes.subspan(5, 15));
    EXPECT_TRUE(sum.covers(text.size()));
    EXPECT_EQ(sum.value(), crc32c(0, bytes));
    sum.add(5, bytes.subspan(5, 1));
    EXPECT_FALSE(sum.covers(text.size()));
    EXPECT_TRUE(RangeChecksum{}.covers(0));
}

}  // namespace
}  // namespace tera
