// A fat binary is a header and a list of entries, each of which is a header and a payload. The fields are not
// documented; their places are those seen in what nvcc 13.0 writes.
#include "soft_gpu/fat_binary.h"

#include <fatbinary_section.h>
#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "soft_gpu/memory.h"

namespace soft_gpu {
namespace {

constexpr std::uint32_t binary_magic = 0xba55ed50;
constexpr std::size_t binary_header_bytes = 16;
constexpr std::size_t least_entry_bytes = 64;
constexpr std::uint16_t kind_ptx = 1;
constexpr std::uint64_t flag_lz4 = 0x2000, flag_zstd = 0x8000;
constexpr std::uint32_t our_arch = 90;

template <class T>
T field(const std::byte* from, std::size_t offset) {
    T value;
    std::memcpy(&value, from + offset, sizeof value);
    return value;
}

struct Entry {
    const std::byte* payload;
    std::uint16_t kind;
    std::uint32_t header_bytes, compressed_bytes, arch;
    std::uint64_t payload_bytes, flags, plain_bytes;
};

Entry entry_at(const std::byte* p) {
    Entry entry{};
    entry.kind = field<std::uint16_t>(p, 0);
    entry.header_bytes = field<std::uint32_t>(p, 4);
    entry.payload_bytes = field<std::uint64_t>(p, 8);
    entry.compressed_bytes = field<std::uint32_t>(p, 16);
    entry.arch = field<std::uint32_t>(p, 28);
    entry.flags = field<std::uint64_t>(p, 40);
    entry.plain_bytes = field<std::uint64_t>(p, 56);
    entry.payload = p + entry.header_bytes;
    return entry;
}

std::string unpacked(const Entry& entry) {
    if (entry.flags & flag_lz4)
        throw Fault("the PTX is compressed by LZ4, which is not read here: compile without -compress-mode=speed");
    std::string text;
    if (entry.flags & flag_zstd) {
        text.resize(entry.plain_bytes);
        const std::size_t n = ZSTD_decompress(text.data(), text.size(), entry.payload, entry.compressed_bytes);
        if (ZSTD_isError(n)) throw Fault(std::string("the PTX cannot be decompressed: ") + ZSTD_getErrorName(n));
        text.resize(n);
    } else {
        text.assign(reinterpret_cast<const char*>(entry.payload), entry.payload_bytes);
    }
    while (!text.empty() && text.back() == '\0') text.pop_back();
    return text;
}

}  // namespace

std::string ptx_of(const void* wrapper) {
    __fatBinC_Wrapper_t outer;
    std::memcpy(&outer, wrapper, sizeof outer);
    if (outer.magic != FATBINC_MAGIC || !outer.data) throw Fault("this is no wrapper of a fat binary");
    const std::byte* p = reinterpret_cast<const std::byte*>(outer.data);
    if (field<std::uint32_t>(p, 0) != binary_magic || field<std::uint16_t>(p, 6) != binary_header_bytes)
        throw Fault("this is no fat binary");
    std::uint64_t left = field<std::uint64_t>(p, 8);
    p += binary_header_bytes;
    Entry best{};
    while (left >= least_entry_bytes) {
        const Entry entry = entry_at(p);
        if (entry.header_bytes < least_entry_bytes || entry.header_bytes > left ||
            entry.payload_bytes > left - entry.header_bytes || entry.compressed_bytes > entry.payload_bytes)
            throw Fault("an entry of a fat binary is longer than the binary");
        if (entry.kind == kind_ptx && entry.arch <= our_arch && entry.arch > best.arch) best = entry;
        const std::uint64_t taken = entry.header_bytes + entry.payload_bytes;
        p += taken;
        left -= taken;
    }
    if (!best.payload) throw Fault("no PTX for sm_90 or older in this file: it has to be compiled with its PTX");
    return unpacked(best);
}

}  // namespace soft_gpu
