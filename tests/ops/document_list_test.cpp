// Documents of packed samples as a list.
#include "ops/document_list.h"

#include <gtest/gtest.h>

namespace tera::test {
namespace {

using Numbers = std::vector<std::int32_t>;

TEST(DocumentList, each_sample_has_its_own) {
    // positions 0 to 4 of two samples: documents of 2, 3 and of 1, 3, 1 tokens
    const Numbers starts = {0, 0, 0, 1, 2, 1, 2, 1, 2, 4};
    Numbers rows;
    const ops::DocumentList list = ops::list_documents(starts.data(), 5, 2, rows);
    EXPECT_EQ(list.count, 5);
    EXPECT_EQ(list.longest, 3);
    EXPECT_EQ(list.rows, rows.data());
    EXPECT_EQ(rows, (Numbers{0, 2, 4, 3, 1, 1, 3, 3, 9, 1}));
}

TEST(DocumentList, is_left_out_of_what_are_no_documents) {
    Numbers rows;
    EXPECT_EQ(ops::list_documents(Numbers{1, 1, 1}.data(), 3, 1, rows).count, 0) << "the first token sees nothing";
    EXPECT_EQ(ops::list_documents(Numbers{0, 1, 0}.data(), 3, 1, rows).count, 0) << "one goes on behind another";
    EXPECT_EQ(ops::list_documents(Numbers{0, 0, 2, 1}.data(), 4, 1, rows).count, 0);
}

TEST(DocumentList, is_left_out_of_too_many) {
    const std::int64_t S = 64;
    Numbers starts, rows;
    for (std::int64_t s = 0; s < S; ++s) starts.push_back(static_cast<std::int32_t>(s / 4 * 4));
    EXPECT_EQ(ops::list_documents(starts.data(), S, 1, rows).count, 16);
    EXPECT_EQ(ops::most_documents(S, 1), 16);
    starts[1] = 1, starts[2] = 1, starts[3] = 1;
    EXPECT_EQ(ops::list_documents(starts.data(), S, 1, rows).count, 0);
}

}  // namespace
}  // namespace tera::test
