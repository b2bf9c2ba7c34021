// Bytes read from front to back, whatever they are stored in: a file, a pipe, gzip, zstd, xz or bzip2. What it is shows
// in its first bytes, not in its name. Memory does not depend on the size of the input.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tera {

enum class Packing { plain, gzip, zstd, xz, bzip2 };
const char* packing_name(Packing packing);

/// A place from which reading can begin again: the beginning of a compressed member, or any place of plain bytes.
struct RestartPoint {
    std::int64_t stored = 0;    ///< byte in the file
    std::int64_t position = 0;  ///< byte of the content that is found there
};

class ByteSource {
  public:
    virtual ~ByteSource() = default;
    ByteSource(const ByteSource&) = delete;
    ByteSource& operator=(const ByteSource&) = delete;

    /// Fills `out`; returns how many bytes there were, fewer than asked only at the end. UsageError, naming the file
    /// and the byte in it, for what cannot be read: cut short, damaged, followed by something else.
    virtual std::size_t read(std::span<char> out) = 0;
    /// Bytes of content handed out so far, those skipped included.
    virtual std::int64_t position() const = 0;
    /// Bytes of the file taken so far: with stored_size(), how far reading has come.
    virtual std::int64_t stored_position() const = 0;
    /// Bytes of the file; 0 if that is not known (a pipe).
    virtual std::int64_t stored_size() const = 0;
    /// The nearest place before position() to begin again.
    virtual RestartPoint restart_point() const = 0;
    virtual Packing packing() const = 0;
    /// The path, or "standard input".
    virtual const std::string& name() const = 0;

    /// Passes over content up to `position`. UsageError if it ends before.
    void skip_to(std::int64_t position);

  protected:
    ByteSource() = default;
};

/// Opens a file, or standard input for "-". The content is read from `at` on, so that position() begins there.
std::unique_ptr<ByteSource> open_bytes(const std::string& path, RestartPoint at = {});

/// How bytes that begin so are packed.
Packing packing_of(std::string_view beginning);

}  // namespace tera
