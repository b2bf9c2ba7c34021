// Integer arrays in numpy's .npy format, version 1.0: the form in which Megatron caches its dataset indices.
//
//   "\x93NUMPY" 01 00 | u16 header length | "{'descr': '<i4', 'fortran_order': False, 'shape': (7, 2), }" spaces "\n"
// The header is padded so that the data, C order and little-endian, begins at a multiple of 64 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace tera {

enum class NpyType : std::uint8_t { i16, i32, u32, i64 };

std::int64_t item_size(NpyType type);

template <class T>
constexpr NpyType npy_type_of() {
    if constexpr (std::is_same_v<T, std::int16_t>) return NpyType::i16;
    if constexpr (std::is_same_v<T, std::int32_t>) return NpyType::i32;
    if constexpr (std::is_same_v<T, std::uint32_t>) return NpyType::u32;
    if constexpr (std::is_same_v<T, std::int64_t>) return NpyType::i64;
}

/// An array of 1 or 2 dimensions. Copies share the elements, which live in memory or in a mapped file.
class NpyArray {
  public:
    NpyArray() = default;
    /// New, uninitialised; fill it through mutable_data before copies are handed out.
    NpyArray(NpyType type, std::vector<std::int64_t> shape);

    NpyType type() const { return type_; }
    const std::vector<std::int64_t>& shape() const { return shape_; }
    std::int64_t size() const { return size_; }
    std::int64_t byte_size() const { return size_ * item_size(type_); }

    /// Element i in storage order, whatever the type.
    std::int64_t operator[](std::int64_t i) const {
        switch (type_) {
            case NpyType::i16:
                return at<std::int16_t>(i);
            case NpyType::i32:
                return at<std::int32_t>(i);
            case NpyType::u32:
                return at<std::uint32_t>(i);
            case NpyType::i64:
                return at<std::int64_t>(i);
        }
        return 0;
    }
    const std::byte* data() const { return data_; }
    template <class T>
    std::span<const T> as() const {
        require_type(npy_type_of<T>());
        return {reinterpret_cast<const T*>(data_), static_cast<std::size_t>(size_)};
    }
    template <class T>
    T* mutable_data() {
        require_type(npy_type_of<T>());
        return reinterpret_cast<T*>(const_cast<std::byte*>(writable()));
    }

  private:
    friend NpyArray parse_npy(std::span<const std::byte>, const std::string&, std::shared_ptr<const void>);
    template <class T>
    T at(std::int64_t i) const {
        return reinterpret_cast<const T*>(data_)[i];
    }
    void require_type(NpyType wanted) const;
    const std::byte* writable() const;

    NpyType type_ = NpyType::i32;
    bool read_only_ = false;
    std::vector<std::int64_t> shape_;
    std::int64_t size_ = 0;
    const std::byte* data_ = nullptr;
    std::shared_ptr<const void> owner_;
};

/// The bytes before the data.
std::string npy_header(NpyType type, const std::vector<std::int64_t>& shape);

/// Reads a .npy image; `name` is for error messages. The result points into `bytes` (which `owner` keeps alive), or
/// holds a copy if the elements are not aligned there. UsageError on anything that is not such a file, whole.
NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& name, std::shared_ptr<const void> owner = {});

/// Maps a .npy file.
NpyArray read_npy(const std::string& path);

/// Writes a .npy file and syncs it. It is there, unfinished, from the start: write elsewhere first and rename.
void write_npy(const std::string& path, const NpyArray& array);

}  // namespace tera
