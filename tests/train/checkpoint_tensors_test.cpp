// Tensors of more than one piece: cut, transposed, converted and summed up right.
#include "train/checkpoint_tensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/rng.h"
#include "optim/main_weights.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

constexpr std::int64_t rows = 1537, cols = 1030;  // 6.3 MB, no multiple of any tile or piece

std::vector<float> numbers(std::int64_t n) {
    std::vector<float> out(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(weight_words(1, 2, i).v[0]) * 0x1p-31f - 1;
    return out;
}

class CheckpointTensors : public ::testing::TestWithParam<bool> {
  protected:
    void SetUp() override {
        const bool transposed = GetParam();
        SafetensorsWriter writer(path_, {{"w", DType::f32, transposed ? Shape{cols, rows} : Shape{rows, cols}}}, {});
        write_tensor(writer, "w", tensor_over(source_.data(), {rows, cols}), transposed);
        checksum_ = writer.checksum("w");
        writer.close();
    }
    TempFolder folder_{TempFolder::Where::memory};
    const std::string path_ = folder_ / "t.safetensors";
    std::vector<float> source_ = numbers(rows * cols);
    std::uint32_t checksum_ = 0;
};

TEST_P(CheckpointTensors, ComeBack) {
    const SafetensorsFile file(path_);
    std::vector<float> back(source_.size());
    EXPECT_EQ(read_tensor(file, *file.find("w"), tensor_over(back.data(), {rows, cols}), GetParam()), checksum_);
    EXPECT_EQ(std::memcmp(back.data(), source_.data(), back.size() * 4), 0);

    std::vector<bf16_t> rounded(source_.size());
    EXPECT_EQ(read_tensor(file, *file.find("w"), tensor_over(rounded.data(), {rows, cols}), GetParam()), checksum_);
    for (std::size_t i = 0; i < rounded.size(); ++i) ASSERT_EQ(rounded[i].bits, split(source_[i]).value) << i;

    std::vector<double> wide(source_.size());
    read_tensor(file, *file.find("w"), tensor_over(wide.data(), {rows, cols}), GetParam());
    for (std::size_t i = 0; i < wide.size(); ++i) ASSERT_EQ(wide[i], static_cast<double>(source_[i])) << i;
}

TEST_P(CheckpointTensors, AreStoredAsTheySay) {
    const SafetensorsFile file(path_);
    std::vector<float> stored(source_.size());
    file.read(*file.find("w"), 0, std::as_writable_bytes(std::span(stored)));
    EXPECT_EQ(crc32c(0, std::as_bytes(std::span(stored))), checksum_);
    for (std::int64_t r = 0; r < rows; r += 7) {
        for (std::int64_t c = 0; c < cols; ++c) {
            const std::int64_t at = GetParam() ? c * rows + r : r * cols + c;
            ASSERT_EQ(stored[static_cast<std::size_t>(at)], source_[static_cast<std::size_t>(r * cols + c)]);
        }
    }
}

TEST_P(CheckpointTensors, FewerRowsAreReadWithTheWholeChecksum) {
    if (GetParam()) return;  // transposed tensors are always read whole
    const SafetensorsFile file(path_);
    constexpr std::int64_t some = 1100;  // within the second piece
    std::vector<float> back(static_cast<std::size_t>((some + 1) * cols), -7.0f);
    EXPECT_EQ(read_tensor(file, *file.find("w"), tensor_over(back.data(), {some, cols}), false), checksum_);
    EXPECT_EQ(std::memcmp(back.data(), source_.data(), static_cast<std::size_t>(some * cols) * 4), 0);
    EXPECT_EQ(back[static_cast<std::size_t>(some * cols)], -7.0f);

    read_rows(file, *file.find("w"), 1400, tensor_over(back.data(), {3, cols}));
    EXPECT_EQ(std::memcmp(back.data(), source_.data() + 1400 * cols, 3 * cols * 4), 0);
}

INSTANTIATE_TEST_SUITE_P(Stored, CheckpointTensors, ::testing::Bool(),
                         [](const auto& how) { return how.param ? "Transposed" : "AsTheyAre"; });

}  // namespace
}  // namespace tera
