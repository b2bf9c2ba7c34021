// Tensors between memory and safetensors files, a few megabytes at a time: converted, transposed and summed up on the
// way.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor.h"
#include "io/safetensors.h"

namespace tera {

/// Rows [begin, begin + count) of a parameter, seen as [count, cols]; a vector has one column.
template <class View>
View row_range(const View& whole, std::int64_t begin, std::int64_t count) {
    const std::int64_t cols = whole.shape.ndim <= 1 ? 1 : whole.numel() / whole.shape[0];
    return whole.reshape(Shape{whole.shape.ndim == 0 ? 1 : whole.shape[0], cols}).slice(begin, count);
}

/// Writes a whole tensor of the file from `rows` [R, C]; transposed: the file holds [C, R].
void write_tensor(SafetensorsWriter& writer, const std::string& name, ConstTensor rows, bool transposed);

/// Reads a whole tensor of the file into `rows` [R, C], converting to its dtype. If the file holds more rows than R,
/// the rest is read for the checksum only (not with transposed). Returns the CRC-32C of the stored bytes.
std::uint32_t read_tensor(const SafetensorsFile& file, const SafetensorsEntry& entry, Tensor rows, bool transposed);

/// Reads rows [first, first + R) of a tensor of the file into `rows` [R, C], converting.
void read_rows(const SafetensorsFile& file, const SafetensorsEntry& entry, std::int64_t first, Tensor rows);

}  // namespace tera
