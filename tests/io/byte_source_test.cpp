#include "io/byte_source.h"

#include <bzlib.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "support/expect_usage_error.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

std::string gzip(const std::string& text) {
    z_stream stream{};
    deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    std::string out(deflateBound(&stream, text.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<unsigned>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<unsigned>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

std::string zstd(const std::string& text) {
    ZSTD_CCtx* const context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    std::string out(ZSTD_compressBound(text.size()), '\0');
    out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
    ZSTD_freeCCtx(context);
    return out;
}

std::string xz(const std::string& text) {
    std::string out(lzma_stream_buffer_bound(text.size()), '\0');
    std::size_t size = 0;
    EXPECT_EQ(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(text.data()),
                                      text.size(), reinterpret_cast<std::uint8_t*>(out.data()), &size, out.size()),
              LZMA_OK);
    out.resize(size);
    return out;
}

std::string bzip2(const std::string& text) {
    auto size = static_cast<unsigned>(text.size() + text.size() / 100 + 1000);
    std::string out(size, '\0');
    EXPECT_EQ(BZ2_bzBuffToBuffCompress(out.data(), &size, const_cast<char*>(text.data()),
                                       static_cast<unsigned>(text.size()), 1, 0, 0),
              BZ_OK);
    out.resize(size);
    return out;
}

std::string plain(const std::string& text) { return text; }

struct Form {
    Packing packing;
    std::string (*pack)(const std::string&);
};

std::string some_text(std::size_t size, unsigned seed = 1) {
    std::mt19937 random(seed);
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>("abc \n"[random() % 5]);
    return text;
}

void write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::string read_all(ByteSource& source, std::size_t chunk) {
    std::string all, part(chunk, '\0');
    for (;;) {
        const std::size_t got = source.read(part);
        all.append(part, 0, got);
        EXPECT_EQ(source.position() >= static_cast<std::int64_t>(all.size()), true);
        if (got < chunk) return all;
    }
}

std::string read_all(const std::string& path, std::size_t chunk = 1 << 16) {
    return read_all(*open_bytes(path), chunk);
}

class Packed : public ::testing::TestWithParam<Form> {
  protected:
    std::string pack(const std::string& text) const { return GetParam().pack(text); }
    const char* name() const { return packing_name(GetParam().packing); }
    TempFolder folder_;
};

TEST_P(Packed, ComesOutAsItWentIn) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{17}, std::size_t{1000000}}) {
        const std::string text = some_text(size);
        write(folder_ / "x", pack(text));
        for (const std::size_t chunk : {1, 1000, 1 << 20}) {
            if (chunk == 1 && size > 1000) continue;
            const auto source = open_bytes(folder_ / "x");
            if (size > 0) {
                EXPECT_EQ(source->packing(), GetParam().packing);
            }
            EXPECT_TRUE(read_all(*source, chunk) == text) << size << " in " << chunk;
            EXPECT_EQ(source->position(), static_cast<std::int64_t>(size));
            EXPECT_EQ(source->stored_position(), source->stored_size());
        }
    }
}

TEST_P(Packed, ReadsMembersOneAfterTheOther) {
    const std::string a = some_text(300000, 1), b = some_text(5, 2), c = some_text(100000, 3);
    write(folder_ / "x", pack(a) + pack(b) + pack("") + pack(c));
    EXPECT_TRUE(read_all(folder_ / "x") == a + b + c);
    if (GetParam().packing == Packing::gzip || GetParam().packing == Packing::xz) {
        write(folder_ / "x", pack(a) + std::string(512, '\0') + pack(b) + std::string(1024, '\0'));
        EXPECT_TRUE(read_all(folder_ / "x") == a + b);
    }
}

TEST_P(Packed, GoesOnFromWhereItWas) {
    const std::string a = some_text(200000, 1), b = some_text(300000, 2), c = some_text(1000, 3);
    write(folder_ / "x", pack(a) + pack(b) + pack(c));
    const std::string all = a + b + c;
    for (const std::size_t stop : {0u, 1u, 199999u, 200000u, 200001u, 450000u, 500500u, 501000u}) {
        const auto first = open_bytes(folder_ / "x");
        std::string part(stop, '\0');
        ASSERT_EQ(first->read(part), stop);
        const RestartPoint point = first->restart_point();
        EXPECT_LE(point.position, first->position());
        if (stop > 200001) {
            EXPECT_GE(point.position, 200000) << "begins further back than it must";
        }
        const auto second = open_bytes(folder_ / "x", point);
        second->skip_to(first->position());
        EXPECT_TRUE(read_all(*second, 1 << 16) == all.substr(stop)) << stop;
        EXPECT_EQ(second->position(), static_cast<std::int64_t>(all.size()));
    }
    const auto source = open_bytes(folder_ / "x");
    expect_usage_error([&] { source->skip_to(501001); }, {"/x", "501000", "changed"});
}

class Checked : public Packed {};  // what has an end mark and a checksum: all but plain bytes

TEST_P(Checked, NoPrefixPassesForWhole) {
    const std::string packed = pack(some_text(400));
    for (std::size_t size = 10; size < packed.size(); ++size) {
        write(folder_ / "x", packed.substr(0, size));
        expect_usage_error([&] { read_all(folder_ / "x"); }, {"/x", name(), "byte"});
    }
}

TEST_P(Checked, NoDamagePassesUnseen) {
    const std::string text = some_text(300), packed = pack(text);
    std::size_t refused = 0;
    for (std::size_t i = 4; i < packed.size(); ++i) {
        std::string damaged = packed;
        damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
        write(folder_ / "x", damaged);
        try {
            // Some bytes of a header say nothing about the content (gzip's time stamp).
            ASSERT_TRUE(packing_of(damaged) == Packing::plain || read_all(folder_ / "x") == text) << "byte " << i;
        } catch (const UsageError&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, packed.size() * 9 / 10);
}

TEST_P(Checked, WhatFollowsIsNotDropped) {
    write(folder_ / "x", pack("abc") + "{\"text\": \"more\"}\n");
    expect_usage_error([&] { read_all(folder_ / "x"); }, {"/x", "byte", "followed by something else"});
}

const Form packed_forms[] = {{Packing::gzip, gzip}, {Packing::zstd, zstd}, {Packing::xz, xz}, {Packing::bzip2, bzip2}};
std::string form_name(const ::testing::TestParamInfo<Form>& form) { return packing_name(form.param.packing); }

INSTANTIATE_TEST_SUITE_P(Plain, Packed, ::testing::Values(Form{Packing::plain, plain}), form_name);
INSTANTIATE_TEST_SUITE_P(All, Packed, ::testing::ValuesIn(packed_forms), form_name);
INSTANTIATE_TEST_SUITE_P(All, Checked, ::testing::ValuesIn(packed_forms), form_name);

TEST(ByteSource, ReadsPipes) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const std::string packed = zstd("through a pipe");
    ASSERT_EQ(::write(ends[1], packed.data(), packed.size()), static_cast<ssize_t>(packed.size()));
    ::close(ends[1]);
    const auto source = open_bytes("/dev/fd/" + std::to_string(ends[0]));
    EXPECT_EQ(read_all(*source, 100), "through a pipe");
    EXPECT_EQ(source->stored_size(), 0);
    ::close(ends[0]);
}

TEST(ByteSource, NamesWhatCannotBeOpened) {
    TempFolder folder;
    expect_usage_error([&] { open_bytes(folder / "none"); }, {"none", "No such file"});
    expect_usage_error([&] { open_bytes(folder.path()); }, {"is a folder"});
    write(folder / "x", "12345");
    expect_usage_error([&] { open_bytes(folder / "x", {9, 9}); }, {"/x", "changed"});
}

TEST(ByteSource, RefusesWindowsThatWouldFillTheMemory) {
    TempFolder folder;
    // A zstd frame header: no content size, window descriptor 0xA8 = 2^31 bytes.
    write(folder / "x", std::string("\x28\xB5\x2F\xFD\x00\xA8\x01\x00\x00", 9));
    expect_usage_error([&] { read_all(folder / "x"); }, {"/x", "zstd", "memory"});
    lzma_options_lzma options;
    lzma_lzma_preset(&options, 0);
    options.dict_size = 1u << 30;
    const lzma_filter filters[2] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
    lzma_stream stream = LZMA_STREAM_INIT;
    std::string out(4096, '\0');
    const std::string text = "x";
    // A stream with a large dictionary is written by changing its size in a small one: encoding would take the memory.
    options.dict_size = 1 << 16;
    ASSERT_EQ(lzma_stream_encoder(&stream, filters, LZMA_CHECK_NONE), LZMA_OK);
    stream.next_in = reinterpret_cast<const std::uint8_t*>(text.data());
    stream.avail_in = text.size();
    stream.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    stream.avail_out = out.size();
    ASSERT_EQ(lzma_code(&stream, LZMA_FINISH), LZMA_STREAM_END);
    out.resize(stream.total_out);
    lzma_end(&stream);
    const std::size_t header =
        12;                // of the stream; then the block's: size, flags, filter id, length, dictionary, pad, CRC
    out[header + 4] = 38;  // 2 GiB
    const auto size = (static_cast<std::size_t>(out[header]) + 1) * 4;
    const std::uint32_t crc = lzma_crc32(reinterpret_cast<const std::uint8_t*>(out.data()) + header, size - 4, 0);
    std::memcpy(out.data() + header + size - 4, &crc, 4);
    write(folder / "y", out);
    expect_usage_error([&] { read_all(folder / "y"); }, {"/y", "xz", "256 MB"});
}

}  // namespace
}  // namespace tera
