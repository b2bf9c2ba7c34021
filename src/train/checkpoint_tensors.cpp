#include "train/checkpoint_tensors.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "ops/convert.h"
#include "optim/main_weights.h"

namespace tera {
namespace {

constexpr std::size_t piece_bytes = std::size_t{4} << 20;
constexpr std::int64_t tile = 64;

/// out[c - begin][r] = in[r][c] for c in [begin, end), as words of the element's size.
template <class Word>
void transpose_columns(const std::byte* in, std::byte* out, Shape shape, std::int64_t begin, std::int64_t end) {
    const std::int64_t rows = shape[0], cols = shape[1];
    for (std::int64_t r0 = 0; r0 < rows; r0 += tile) {
        const std::int64_t r1 = std::min(rows, r0 + tile);
        for (std::int64_t c = begin; c < end; ++c) {
            for (std::int64_t r = r0; r < r1; ++r) {
                std::memcpy(out + static_cast<std::size_t>((c - begin) * rows + r) * sizeof(Word),
                            in + static_cast<std::size_t>(r * cols + c) * sizeof(Word), sizeof(Word));
            }
        }
    }
}

void transpose_columns(ConstTensor in, std::byte* out, std::int64_t begin, std::int64_t end) {
    switch (size_of(in.dtype)) {
        case 8:
            return transpose_columns<std::uint64_t>(in.data, out, in.shape, begin, end);
        case 4:
            return transpose_columns<std::uint32_t>(in.data, out, in.shape, begin, end);
        case 2:
            return transpose_columns<std::uint16_t>(in.data, out, in.shape, begin, end);
        default:
            throw Error("no transposition of bytes");
    }
}

/// Puts stored rows [begin, begin + n) of a transposed tensor [C, R], given in rows' dtype, in their columns.
template <class Word>
void put_columns(const std::byte* stored, Tensor rows, std::int64_t begin, std::int64_t n) {
    const std::int64_t R = rows.shape[0], C = rows.shape[1];
    for (std::int64_t r0 = 0; r0 < R; r0 += tile) {
        const std::int64_t r1 = std::min(R, r0 + tile);
        for (std::int64_t c = 0; c < n; ++c) {
            for (std::int64_t r = r0; r < r1; ++r) {
                std::memcpy(rows.data + static_cast<std::size_t>(r * C + begin + c) * sizeof(Word),
                            stored + static_cast<std::size_t>(c * R + r) * sizeof(Word), sizeof(Word));
            }
        }
    }
}

void put_columns(const std::byte* stored, Tensor rows, std::int64_t begin, std::int64_t n) {
    switch (size_of(rows.dtype)) {
        case 8:
            return put_columns<std::uint64_t>(stored, rows, begin, n);
        case 4:
            return put_columns<std::uint32_t>(stored, rows, begin, n);
        case 2:
            return put_columns<std::uint16_t>(stored, rows, begin, n);
        default:
            throw Error("no transposition of bytes");
    }
}

/// To bf16 as main weights are rounded: a value that is read from a main weight is the one that stood beside it.
void convert(const std::byte* in, DType from, std::byte* out, DType to, std::int64_t n) {
    if (from == DType::f32 && to == DType::bf16) {
        const auto* const x = reinterpret_cast<const float*>(in);
        auto* const values = reinterpret_cast<bf16_t*>(out);
        for (std::int64_t i = 0; i < n; ++i) values[i].bits = split(x[i]).value;
        return;
    }
    dispatch_float(from, [&](auto a) {
        dispatch_float(to, [&](auto b) {
            using From = decltype(a);
            using To = decltype(b);
            ops::cpu::convert_row(reinterpret_cast<To*>(out), reinterpret_cast<const From*>(in), n);
        });
    });
}

std::int64_t rows_per_piece(std::int64_t cols, std::size_t element) {
    const std::size_t row = std::max<std::size_t>(1, static_cast<std::size_t>(cols) * element);
    return static_cast<std::int64_t>(std::max<std::size_t>(1, piece_bytes / row));
}

}  // namespace

void write_tensor(SafetensorsWriter& writer, const std::string& name, ConstTensor rows, bool transposed) {
    TERA_CHECK(rows.device == Device::cpu && rows.shape.ndim == 2, name, " ", rows.shape.str());
    if (!transposed) {
        for (std::size_t at = 0; at < rows.bytes(); at += piece_bytes) {
            writer.write(name, at, {rows.data + at, std::min(piece_bytes, rows.bytes() - at)});
        }
        return;
    }
    const std::int64_t R = rows.shape[0], C = rows.shape[1], step = rows_per_piece(R, size_of(rows.dtype));
    std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(step, C) * R) * size_of(rows.dtype));
    for (std::int64_t c = 0; c < C; c += step) {
        const std::int64_t n = std::min(step, C - c);
        transpose_columns(rows, buffer.data(), c, c + n);
        writer.write(name, static_cast<std::uint64_t>(c * R) * size_of(rows.dtype),
                     {buffer.data(), static_cast<std::size_t>(n * R) * size_of(rows.dtype)});
    }
}

std::uint32_t read_tensor(const SafetensorsFile& file, const SafetensorsEntry& entry, Tensor rows, bool transposed) {
    TERA_CHECK(rows.device == Device::cpu && rows.shape.ndim == 2, entry.name, " ", rows.shape.str());
    TERA_CHECK(entry.dtype.has_value(), entry.name, " is ", entry.dtype_name);
    const DType from = *entry.dtype;
    const std::int64_t R = rows.shape[0], C = rows.shape[1];
    const std::int64_t width = transposed ? R : C, size = static_cast<std::int64_t>(size_of(from));
    const std::int64_t stored = width == 0 ? 0 : static_cast<std::int64_t>(entry.bytes) / (width * size);
    TERA_CHECK(transposed ? stored == C : stored >= R, entry.name, ": ", stored, " rows for ", rows.shape.str());
    const std::int64_t step = rows_per_piece(width, static_cast<std::size_t>(size));
    const std::size_t largest = static_cast<std::size_t>(std::min(step, stored) * width);
    std::vector<std::byte> raw(largest * static_cast<std::size_t>(size)), converted;
    if (from != rows.dtype) converted.resize(largest * size_of(rows.dtype));

    std::uint32_t crc = 0;
    for (std::int64_t at = 0; at < stored; at += step) {
        const std::int64_t n = std::min(step, stored - at);
        const std::span<std::byte> piece(raw.data(), static_cast<std::size_t>(n * width * size));
        file.read(entry, static_cast<std::uint64_t>(at * width * size), piece);
        crc = crc32c(crc, piece);
        if (transposed) {
            if (from != rows.dtype) convert(raw.data(), from, converted.data(), rows.dtype, n * width);
            put_columns(from == rows.dtype ? raw.data() : converted.data(), rows, at, n);
        } else if (const std::int64_t wanted = std::clamp<std::int64_t>(R - at, 0, n); wanted > 0) {
            std::byte* out = rows.data + static_cast<std::size_t>(at * C) * size_of(rows.dtype);
            convert(raw.data(), from, out, rows.dtype, wanted * C);
        }
    }
    return crc;
}

void read_rows(const SafetensorsFile& file, const SafetensorsEntry& entry, std::int64_t first, Tensor rows) {
    TERA_CHECK(rows.device == Device::cpu && rows.shape.ndim == 2 && entry.dtype.has_value(), entry.name);
    const std::int64_t C = rows.shape[1], size = static_cast<std::int64_t>(size_of(*entry.dtype));
    std::vector<std::byte> raw(static_cast<std::size_t>(C * size));
    for (std::int64_t r = 0; r < rows.shape[0]; ++r) {
        file.read(entry, static_cast<std::uint64_t>((first + r) * C * size), raw);
        convert(raw.data(), *entry.dtype, rows.data + static_cast<std::size_t>(r * C) * size_of(rows.dtype), rows.dtype,
                C);
    }
}

}  // namespace tera
