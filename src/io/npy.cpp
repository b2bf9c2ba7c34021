#include "io/npy.h"

#include <sys/mman.h>

#include <cctype>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "core/error.h"
#include "io/durable_file.h"
#include "io/mapped_file.h"

namespace tera {
namespace {

constexpr std::string_view magic{"\x93NUMPY", 6};
constexpr std::size_t prelude = 10;  // magic, version, header length
constexpr std::size_t data_alignment = 64;

const char* descriptor(NpyType type) {
    switch (type) {
        case NpyType::i16:
            return "<i2";
        case NpyType::i32:
            return "<i4";
        case NpyType::u32:
            return "<u4";
        case NpyType::i64:
            return "<i8";
    }
    return "";
}

/// Reads the header's Python dictionary; only the form numpy writes (any key order, any spacing) is understood.
class HeaderParser {
  public:
    HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

    void parse() {
        expect('{');
        while (!accept('}')) {
            const std::string_view key = quoted();
            expect(':');
            if (key == "descr") {
                type_ = parse_type(quoted());
                ++found_;
            } else if (key == "fortran_order") {
                if (!word("False")) fail("fortran_order is not False");
                ++found_;
            } else if (key == "shape") {
                parse_shape();
                ++found_;
            } else {
                fail("unknown header key");
            }
            if (!accept(',')) {
                expect('}');
                break;
            }
        }
        if (found_ != 3) fail("header keys missing or repeated");
        skip_space();
        if (position_ != text_.size()) fail("text after the header");
    }
    NpyType type() const { return type_; }
    const std::vector<std::int64_t>& shape() const { return shape_; }

  private:
    [[noreturn]] void fail(const char* why) const {
        usage_error(name_, ": not a usable .npy file (", why, "); delete it or write it again");
    }
    void skip_space() {
        while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_]))) ++position_;
    }
    bool accept(char c) {
        skip_space();
        if (position_ >= text_.size() || text_[position_] != c) return false;
        ++position_;
        return true;
    }
    void expect(char c) {
        if (!accept(c)) fail("malformed header");
    }
    bool word(std::string_view w) {
        skip_space();
        if (text_.substr(position_, w.size()) != w) return false;
        position_ += w.size();
        return true;
    }
    std::string_view quoted() {
        expect('\'');
        const std::size_t end = text_.find('\'', position_);
        if (end == std::string_view::npos) fail("malformed header");
        const std::string_view inside = text_.substr(position_, end - position_);
        position_ = end + 1;
        return inside;
    }
    NpyType parse_type(std::string_view d) const {
        for (NpyType t : {NpyType::i16, NpyType::i32, NpyType::u32, NpyType::i64})
            if (d == descriptor(t)) return t;
        fail("element type is none of <i2 <i4 <u4 <i8");
    }
    void parse_shape() {
        expect('(');
        while (!accept(')')) {
            skip_space();
            std::int64_t dim = 0;
            const std::size_t begin = position_;
            while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') {
                if (dim > (std::numeric_limits<std::int64_t>::max() - 9) / 10) fail("shape too large");
                dim = dim * 10 + (text_[position_++] - '0');
            }
            if (position_ == begin) fail("malformed shape");
            shape_.push_back(dim);
            if (!accept(',')) {
                expect(')');
                break;
            }
        }
        if (shape_.empty() || shape_.size() > 2) fail("not 1 or 2 dimensions");
    }

    std::string_view text_;
    const std::string& name_;
    std::size_t position_ = 0;
    int found_ = 0;
    NpyType type_ = NpyType::i32;
    std::vector<std::int64_t> shape_;
};

/// Number of elements; -1 when it (or its size in bytes) does not fit.
std::int64_t element_count(const std::vector<std::int64_t>& shape, std::int64_t bytes_each) {
    std::int64_t count = 1, bytes = 0;
    for (std::int64_t dim : shape)
        if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) return -1;
    return __builtin_mul_overflow(count, bytes_each, &bytes) ? -1 : count;
}

}  // namespace

std::int64_t item_size(NpyType type) { return type == NpyType::i16 ? 2 : type == NpyType::i64 ? 8 : 4; }

NpyArray::NpyArray(NpyType type, std::vector<std::int64_t> shape) : type_(type), shape_(std::move(shape)) {
    size_ = element_count(shape_, item_size(type_));
    TERA_CHECK(size_ >= 0, "array too large");
    constexpr std::size_t huge_page = std::size_t{1} << 21;
    const auto bytes = static_cast<std::size_t>(byte_size());
    const std::size_t alignment = bytes >= 16 * huge_page ? huge_page : data_alignment;
    const std::size_t rounded = (bytes / alignment + 1) * alignment;
    void* memory = std::aligned_alloc(alignment, rounded);
    if (memory == nullptr) throw std::bad_alloc();
    // Index arrays are shuffled and read at random: without huge pages that is one TLB miss per element.
    if (alignment == huge_page) ::madvise(memory, rounded, MADV_HUGEPAGE);
    owner_ = std::shared_ptr<const void>(memory, [](const void* p) { std::free(const_cast<void*>(p)); });
    data_ = static_cast<const std::byte*>(memory);
}

void NpyArray::require_type(NpyType wanted) const {
    TERA_CHECK(type_ == wanted, "array holds ", descriptor(type_), ", asked for ", descriptor(wanted));
}

const std::byte* NpyArray::writable() const {
    TERA_CHECK(!read_only_, "array belongs to a mapped file");
    return data_;
}

std::string npy_header(NpyType type, const std::vector<std::int64_t>& shape) {
    std::string dims;
    for (std::size_t i = 0; i < shape.size(); ++i) dims += (i != 0 ? ", " : "") + std::to_string(shape[i]);
    if (shape.size() == 1) dims += ",";
    std::string dict = cat("{'descr': '", descriptor(type), "', 'fortran_order': False, 'shape': (", dims, "), }");
    const std::size_t unpadded = prelude + dict.size() + 1;
    dict.append((data_alignment - unpadded % data_alignment) % data_alignment, ' ');
    dict += '\n';
    std::string header(magic);
    header += '\x01';
    header += '\x00';
    header += static_cast<char>(dict.size() & 0xff);
    header += static_cast<char>(dict.size() >> 8);
    return header + dict;
}

NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& name, std::shared_ptr<const void> owner) {
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    if (bytes.size() < prelude || std::string_view(text, magic.size()) != magic)
        usage_error(name, ": not a .npy file (wrong magic); delete it or write it again");
    if (text[6] != 1 || text[7] != 0)
        usage_error(name, ": .npy version ", int(text[6]), ".", int(text[7]), " is not supported, only 1.0");
    const std::size_t header_size = std::size_t(std::uint8_t(text[8])) | std::size_t(std::uint8_t(text[9])) << 8;
    if (bytes.size() - prelude < header_size) usage_error(name, ": .npy header cut short; delete it or write it again");
    HeaderParser header(std::string_view(text + prelude, header_size), name);
    header.parse();

    NpyArray array;
    array.type_ = header.type();
    array.shape_ = header.shape();
    array.size_ = element_count(array.shape_, item_size(array.type_));
    const std::span<const std::byte> data = bytes.subspan(prelude + header_size);
    if (array.size_ < 0 || static_cast<std::size_t>(array.byte_size()) != data.size())
        usage_error(name, ": holds ", data.size(), " bytes of data where its header promises ",
                    array.size_ < 0 ? std::string("too many") : std::to_string(array.byte_size()),
                    "; the file is damaged, delete it or write it again");
    const bool aligned =
        reinterpret_cast<std::uintptr_t>(data.data()) % static_cast<std::size_t>(item_size(array.type_)) == 0;
    if (owner != nullptr && aligned) {
        array.data_ = data.data();
        array.owner_ = std::move(owner);
        array.read_only_ = true;
        return array;
    }
    NpyArray copy(array.type_, array.shape_);
    if (!data.empty()) std::memcpy(const_cast<std::byte*>(copy.data_), data.data(), data.size());
    return copy;
}

NpyArray read_npy(const std::string& path) {
    auto file = std::make_shared<const MappedFile>(path);
    return parse_npy(file->bytes(), path, file);
}

void write_npy(const std::string& path, const NpyArray& array) {
    OutputFile file(path, OutputFile::Mode::create);
    file.append(npy_header(array.type(), array.shape()));
    file.append({array.data(), static_cast<std::size_t>(array.byte_size())});
    file.sync();
    file.close();
}

}  // namespace tera
