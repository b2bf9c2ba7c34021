#include "io/npy.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "support/expect_usage_error.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

std::string slurp(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

NpyArray parse(const std::string& bytes) {
    return parse_npy(std::as_bytes(std::span(bytes.data(), bytes.size())), "x.npy");
}

/// A file with the given header text and data.
std::string file(const std::string& dict, const std::string& data) {
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(dict.size() & 0xff);
    bytes += static_cast<char>(dict.size() >> 8);
    return bytes + dict + data;
}

// numpy.save of arange(7, dtype='<i4'): header of 118 bytes, data at 128.
TEST(Npy, HeaderAsNumpyWritesIt) {
    const std::string header = npy_header(NpyType::i32, {7});
    EXPECT_EQ(header.size(), 128u);
    EXPECT_EQ(header.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
    EXPECT_EQ(header.substr(10, 57), "{'descr': '<i4', 'fortran_order': False, 'shape': (7,), }");
    EXPECT_EQ(header.substr(67), std::string(60, ' ') + "\n");
    EXPECT_NE(npy_header(NpyType::i64, {13, 2}).find("'descr': '<i8', 'fortran_order': False, 'shape': (13, 2), }"),
              std::string::npos);
    for (std::int64_t n = 1; n < 1'000'000'000'000; n *= 10) EXPECT_EQ(npy_header(NpyType::u32, {n}).size() % 64, 0u);
}

TEST(Npy, RoundTrip) {
    const TempFolder dir;
    NpyArray a(NpyType::i16, {3, 2});
    for (int i = 0; i < 6; ++i) a.mutable_data<std::int16_t>()[i] = static_cast<std::int16_t>(-3 + i);
    write_npy(dir / "a.npy", a);
    const NpyArray b = read_npy(dir / "a.npy");
    EXPECT_EQ(b.type(), NpyType::i16);
    EXPECT_EQ(b.shape(), (std::vector<std::int64_t>{3, 2}));
    for (int i = 0; i < 6; ++i) EXPECT_EQ(b[i], -3 + i);
    EXPECT_THROW(b.as<std::int32_t>(), Error);
    EXPECT_THROW(NpyArray(b).mutable_data<std::int16_t>(), Error);

    NpyArray c(NpyType::u32, {2});
    c.mutable_data<std::uint32_t>()[0] = 0xFFFFFFFFu;
    c.mutable_data<std::uint32_t>()[1] = 1;
    write_npy(dir / "c.npy", c);
    EXPECT_EQ(read_npy(dir / "c.npy")[0], 0xFFFFFFFFll);
    write_npy(dir / "e.npy", NpyArray(NpyType::i64, {0}));
    EXPECT_EQ(read_npy(dir / "e.npy").size(), 0);
}

TEST(Npy, OtherSpellingsOfTheHeader) {
    const std::string data(8, '\1');
    EXPECT_EQ(parse(file("{'shape':(2,),'fortran_order':False,'descr':'<i4'}", data)).size(), 2);
    EXPECT_EQ(parse(file("{'descr': '<i8', 'fortran_order': False, 'shape': (1,1), }  \n", data))[0],
              0x0101010101010101);
}

TEST(Npy, Refused) {
    const std::string data(8, '\0');
    const auto refuse = [](const std::string& bytes, std::initializer_list<const char*> parts) {
        expect_usage_error([&] { parse(bytes); }, parts);
    };
    refuse("", {"x.npy", "magic"});
    refuse("MMIDIDX\0\0\0\0\0", {"magic"});
    refuse(std::string("\x93NUMPY\x02\x00\x00\x00\x00\x00", 12), {"version 2.0"});
    refuse(std::string("\x93NUMPY\x01\x00\xff\xff{", 11), {"cut short"});
    refuse(file("", data), {"malformed"});
    refuse(file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", data), {"element type"});
    refuse(file("{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }", data), {"element type"});
    refuse(file("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", data), {"element type"});
    refuse(file("{'descr': '<i4', 'fortran_order': True, 'shape': (2,), }", data), {"fortran_order"});
    refuse(file("{'descr': '<i4', 'fortran_order': False, 'shape': (), }", data), {"dimensions"});
    refuse(file("{'descr': '<i4', 'fortran_order': False, 'shape': (1,1,2), }", data), {"dimensions"});
    refuse(file("{'descr': '<i4', 'fortran_order': False, 'shape': (-2,), }", data), {"shape"});
    refuse(file("{'descr': '<i4', 'fortran_order': False, 'shape': (99999999999999999999,), }", data), {"too large"});
    refuse(file("{'descr': '<i4', 'fortran_order': False, 'shape': (9000000000000000000, 4), }", data), {"promises"});
    refuse(file("{'descr': '<i4', 'fortran_order': False, 'shape': (4611686018427387904,), }", data), {"promises"});
    refuse(file("{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", data), {"8 bytes", "12"});
    refuse(file("{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }", data), {"8 bytes", "4"});
    refuse(file("{'descr': '<i4', 'shape': (2,), }", data), {"missing"});
    refuse(file("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), 'x': 1}", data), {"unknown"});
    refuse(file("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), } x", data), {"text after"});
    expect_usage_error([] { read_npy("/nowhere/x.npy"); }, {"/nowhere/x.npy", "no such file"});
}

TEST(Npy, RandomDamage) {
    const TempFolder dir;
    write_npy(dir / "a.npy", NpyArray(NpyType::i32, {5, 2}));
    const std::string whole = slurp(dir / "a.npy");
    std::mt19937 random(1);
    for (int round = 0; round < 20000; ++round) {
        std::string bytes = whole;
        for (int k = 0; k < 2; ++k) bytes[random() % 80] = static_cast<char>(random());
        bytes.resize(random() % 4 == 0 ? random() % bytes.size() : bytes.size());
        try {
            const NpyArray array = parse(bytes);
            for (std::int64_t i = 0; i < array.size(); ++i) (void)array[i];
        } catch (const UsageError&) {
        }
    }
}

}  // namespace
}  // namespace tera
