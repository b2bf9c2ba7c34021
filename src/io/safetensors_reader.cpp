// Reading safetensors files. A header may be hostile: nothing it says is used before it has been checked.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "io/json_file.h"
#include "io/safetensors.h"

namespace tera {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t largest_header = 100'000'000;  // the reference implementation's bound

struct KnownDType {
    const char* name;
    std::uint64_t bits;
    std::optional<DType> dtype;
};

const KnownDType known_dtypes[] = {
    {"F64", 64, DType::f64},          {"F32", 32, DType::f32},
    {"BF16", 16, DType::bf16},        {"F16", 16, DType::f16},
    {"I64", 64, DType::i64},          {"I32", 32, DType::i32},
    {"U16", 16, DType::u16},          {"U8", 8, DType::u8},
    {"I16", 16, std::nullopt},        {"I8", 8, std::nullopt},
    {"BOOL", 8, std::nullopt},        {"U32", 32, std::nullopt},
    {"U64", 64, std::nullopt},        {"C64", 64, std::nullopt},
    {"F8_E5M2", 8, std::nullopt},     {"F8_E4M3", 8, std::nullopt},
    {"F8_E5M2FNUZ", 8, std::nullopt}, {"F8_E4M3FNUZ", 8, std::nullopt},
    {"F8_E8M0", 8, std::nullopt},     {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},     {"F4", 4, std::nullopt},
};

void read_exactly(int fd, std::uint64_t offset, std::span<std::byte> out, const std::string& path) {
    while (!out.empty()) {
        const ssize_t got = ::pread(fd, out.data(), std::min<std::size_t>(out.size(), std::size_t{1} << 30),
                                    static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) usage_error("cannot read ", path, ": ", std::strerror(errno));
        if (got == 0)
            usage_error(path, ": ends at byte ", offset, " while it is being read; is it still being written?");
        offset += static_cast<std::uint64_t>(got);
        out = out.subspan(static_cast<std::size_t>(got));
    }
}

std::uint64_t unsigned_integer(const nlohmann::json& value, const std::string& where, const char* what) {
    if (!value.is_number_unsigned()) usage_error(where, ": ", what, " must be a non-negative integer");
    const auto v = value.get<std::uint64_t>();
    if (v > static_cast<std::uint64_t>(INT64_MAX)) usage_error(where, ": ", what, " is too large");
    return v;
}

/// Product of the dimensions times the element's bits, in bytes.
std::uint64_t bytes_of(const std::vector<std::int64_t>& shape, std::uint64_t bits, const std::string& where) {
    std::uint64_t total = bits;
    for (const std::int64_t d : shape) {
        if (__builtin_mul_overflow(total, static_cast<std::uint64_t>(d), &total)) {
            usage_error(where, ": the shape is too large");
        }
    }
    if (total % 8 != 0) usage_error(where, ": the tensor does not end at a whole byte");
    return total / 8;
}

SafetensorsEntry parse_entry(const std::string& name, const nlohmann::json& json, const std::string& path) {
    SafetensorsEntry entry;
    const std::string where = cat(path, ": tensor ", name.substr(0, 200));
    const JsonObject object(json, where);
    for (const auto& item : json.items()) {
        if (item.key() != "dtype" && item.key() != "shape" && item.key() != "data_offsets") {
            object.fail(item.key(), "is not a part of a safetensors header");
        }
    }
    entry.name = name;
    entry.dtype_name = object.text("dtype");
    const auto known = std::find_if(std::begin(known_dtypes), std::end(known_dtypes),
                                    [&](const KnownDType& k) { return entry.dtype_name == k.name; });
    if (known == std::end(known_dtypes)) usage_error(where, ": unknown dtype \"", entry.dtype_name.substr(0, 40), "\"");
    entry.dtype = known->dtype;

    const nlohmann::json& shape = object.value("shape");
    if (!shape.is_array()) object.fail("shape", "must be an array");
    for (const nlohmann::json& d : shape) {
        entry.shape.push_back(static_cast<std::int64_t>(unsigned_integer(d, where, "a dimension")));
    }
    const nlohmann::json& range = object.value("data_offsets");
    if (!range.is_array() || range.size() != 2) object.fail("data_offsets", "must be two numbers");
    const std::uint64_t begin = unsigned_integer(range[0], where, "an offset");
    const std::uint64_t end = unsigned_integer(range[1], where, "an offset");
    entry.offset = begin;
    entry.bytes = bytes_of(entry.shape, known->bits, where);
    if (end < begin || end - begin != entry.bytes) {
        usage_error(where, ": ", entry.shape_text(), " of ", entry.dtype_name, " takes ", entry.bytes,
                    " bytes, but the offsets are [", begin, ", ", end, "]");
    }
    return entry;
}

}  // namespace

const char* safetensors_dtype(DType dtype) {
    for (const KnownDType& k : known_dtypes) {
        if (k.dtype == dtype) return k.name;
    }
    throw Error(cat("no safetensors dtype for ", name_of(dtype)));
}

std::string SafetensorsEntry::shape_text() const {
    std::string text = "[";
    for (std::size_t i = 0; i < std::min<std::size_t>(shape.size(), 8); ++i) text += cat(i == 0 ? "" : ",", shape[i]);
    return text + (shape.size() > 8 ? ",...]" : "]");
}

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) usage_error("cannot open ", path, ": ", std::strerror(errno));
    try {
        struct stat info {};
        if (::fstat(fd_, &info) != 0) usage_error("cannot read ", path, ": ", std::strerror(errno));
        if (!S_ISREG(info.st_mode)) usage_error(path, " is not a file");
        const auto size = static_cast<std::uint64_t>(info.st_size);
        if (size < 8) usage_error(path, ": ", size, " bytes are too few for a safetensors file");
        std::uint64_t length = 0;
        read_exactly(fd_, 0, std::as_writable_bytes(std::span(&length, 1)), path);
        if (length > largest_header || length > size - 8) {
            usage_error(path, ": not a whole safetensors file (a header of ", length, " bytes in a file of ", size,
                        ")");
        }
        std::string header(length, '\0');
        read_exactly(fd_, 8, std::as_writable_bytes(std::span(header)), path);
        parse_header(header, 8 + length, size);
    } catch (...) {
        ::close(fd_);
        throw;
    }
}

SafetensorsFile::~SafetensorsFile() { ::close(fd_); }

void SafetensorsFile::parse_header(std::string_view header, std::uint64_t data_begin, std::uint64_t file_size) {
    if (header.empty() || header[0] != '{') usage_error(path_, ": not a safetensors file (no JSON header)");
    const nlohmann::json json = parse_json(header, cat(path_, " (header)"));
    for (const auto& item : json.items()) {
        if (item.key() == "__metadata__") {
            if (!item.value().is_object()) usage_error(path_, ": \"__metadata__\" must be an object of texts");
            for (const auto& pair : item.value().items()) {
                if (!pair.value().is_string()) usage_error(path_, ": \"__metadata__\" must be an object of texts");
                metadata_[pair.key()] = pair.value().get<std::string>();
            }
        } else {
            entries_.push_back(parse_entry(item.key(), item.value(), path_));
        }
    }
    check_layout(data_begin, file_size);
    for (std::size_t i = 0; i < entries_.size(); ++i) by_name_[entries_[i].name] = i;
}

// Data must follow data without overlap or gap up to the end of the file; so a truncated file shows here at the latest.
void SafetensorsFile::check_layout(std::uint64_t data_begin, std::uint64_t file_size) {
    std::sort(entries_.begin(), entries_.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
        return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
    });
    const std::uint64_t data_size = file_size - data_begin;
    std::uint64_t end = 0;
    for (SafetensorsEntry& entry : entries_) {
        const std::string where = cat(path_, ": tensor ", entry.name.substr(0, 200));
        if (entry.offset < end) usage_error(where, " overlaps another one");
        if (entry.offset > end) usage_error(where, " leaves a gap of ", entry.offset - end, " bytes before it");
        end = entry.offset + entry.bytes;
        if (end > data_size) {
            usage_error(where, " ends ", end - data_size, " bytes beyond the end of the file: is the file whole?");
        }
        entry.offset += data_begin;
    }
    if (end != data_size) usage_error(path_, ": ", data_size - end, " bytes at the end belong to no tensor");
}

const SafetensorsEntry* SafetensorsFile::find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &entries_[found->second];
}

void SafetensorsFile::read(const SafetensorsEntry& entry, std::uint64_t first, std::span<std::byte> out) const {
    TERA_CHECK(first <= entry.bytes && out.size() <= entry.bytes - first, entry.name, ": bytes ", first, "+",
               out.size(), " of ", entry.bytes);
    read_exactly(fd_, entry.offset + first, out, path_);
}

bool SafetensorsSet::exists(const std::string& folder, const std::string& stem) {
    std::error_code ignored;
    return fs::exists(cat(folder, "/", stem, ".safetensors"), ignored) ||
           fs::exists(cat(folder, "/", stem, ".safetensors.index.json"), ignored);
}

SafetensorsSet::SafetensorsSet(const std::string& folder, const std::string& stem) {
    const std::string single = cat(folder, "/", stem, ".safetensors"), index = single + ".index.json";
    std::error_code ignored;
    if (fs::exists(single, ignored)) {
        path_ = single;
        add(single);
        return;
    }
    if (!fs::exists(index, ignored)) {
        usage_error(folder, " holds neither ", stem, ".safetensors nor ", stem, ".safetensors.index.json");
    }
    path_ = index;
    const nlohmann::json json = read_json_file(index);
    const nlohmann::json& weight_map = JsonObject(json, index).object("weight_map").json();
    std::vector<std::string> files;
    for (const auto& item : weight_map.items()) {
        if (!item.value().is_string()) usage_error(index, ": \"weight_map\" must map names to files");
        files.push_back(item.value().get<std::string>());
    }
    std::sort(files.begin(), files.end());
    files.erase(std::unique(files.begin(), files.end()), files.end());
    for (const std::string& file : files) {
        if (file.empty() || file.find('/') != std::string::npos || file.find('\0') != std::string::npos) {
            usage_error(index, ": \"", file.substr(0, 80), "\" is not the name of a file in this folder");
        }
        add(cat(folder, "/", file));
    }
    check_index(weight_map, folder);
}

void SafetensorsSet::add(const std::string& path) {
    files_.push_back(std::make_unique<SafetensorsFile>(path));
    for (const SafetensorsEntry& entry : files_.back()->entries()) {
        const auto [place, is_new] = by_name_.emplace(entry.name, Found{files_.back().get(), &entry});
        if (!is_new) usage_error(path, ": tensor ", entry.name, " is also in ", place->second.file->path());
    }
}

void SafetensorsSet::check_index(const nlohmann::json& weight_map, const std::string& folder) const {
    for (const auto& item : weight_map.items()) {
        const Found found = find(item.key());
        const std::string wanted = cat(folder, "/", item.value().get<std::string>());
        if (!found || found.file->path() != wanted) {
            usage_error(wanted, ": tensor ", item.key(), " is missing, but the index ", path_, " says it is here");
        }
    }
}

SafetensorsSet::Found SafetensorsSet::find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? Found{} : found->second;
}

std::vector<std::string> SafetensorsSet::names() const {
    std::vector<std::string> list;
    for (const auto& [name, found] : by_name_) list.push_back(name);
    return list;
}

}  // namespace tera
