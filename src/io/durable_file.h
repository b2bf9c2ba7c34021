// Writing files so that they are either whole or not there, and errors that say what to do.
//
// Whatever goes wrong while writing (full disk, quota, file size limit, read-only folder) is a UsageError that names
// the path, the cause and, where room was lacking, how much is needed and how much is free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tera {

/// A file open for writing at any place. Not synced unless asked; closed by the destructor without a word, so call
/// close() to learn of errors.
class OutputFile {
  public:
    enum class Mode {
        create,  ///< a new file; one of the same name is emptied
        join     ///< another process has created it; only its ranges are written
    };
    OutputFile(const std::string& path, Mode mode);
    ~OutputFile();
    OutputFile(OutputFile&& other) noexcept;
    OutputFile& operator=(OutputFile&&) = delete;
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    /// Sets the size and takes the disk space now, so that a full disk shows before hours of writing.
    void reserve(std::uint64_t bytes);
    void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
    void append(std::span<const std::byte> bytes);
    void append(std::string_view text) { append(std::as_bytes(std::span(text.data(), text.size()))); }
    /// Asks for part of the file to be brought to the disk, and does not wait: a hint that makes sync() short.
    void start_sync(std::uint64_t offset, std::uint64_t bytes);
    /// Returns when the data has reached the disk.
    void sync();
    void close();

    const std::string& path() const { return path_; }

  private:
    [[noreturn]] void fail(const std::string& what, int error) const;

    std::string path_;
    int fd_ = -1;
    std::uint64_t end_ = 0;       // where append() goes on
    std::uint64_t expected_ = 0;  // size asked for with reserve()
};

/// A file that appears under its name only when commit() has synced it. Until then it has a temporary name beside it,
/// and the destructor removes it.
class DurableFile {
  public:
    explicit DurableFile(const std::string& path);
    ~DurableFile();
    DurableFile(const DurableFile&) = delete;
    DurableFile& operator=(const DurableFile&) = delete;

    OutputFile& out() { return out_; }
    /// Syncs, renames over the final name, syncs the folder.
    void commit();

  private:
    std::string path_, temporary_;
    OutputFile out_;
    bool committed_ = false;
};

/// Replaces `path` by a file with this content; at every instant either the old or the new one is there.
void write_file_durably(const std::string& path, std::string_view content);

/// The name is on disk when this returns. Replaces a file (not a folder) of that name.
void rename_durably(const std::string& from, const std::string& to);

/// Makes the names in a folder (files created, renamed or removed in it) survive a crash.
void sync_folder(const std::string& path);

/// Creates the folder and those above it; nothing if it is there. UsageError names the part that failed.
void make_folders(const std::string& path);

/// Removes a file or a folder with all it holds; nothing if it is not there. UsageError if something remains.
void remove_tree(const std::string& path);

/// The folder part of a path, "." if it has none.
std::string folder_of(const std::string& path);

/// Bytes that this user can still write where `path` is or would be; nothing if that cannot be said.
std::optional<std::uint64_t> free_bytes(const std::string& path);

/// "1.5 GB": three digits at most, powers of 1000.
std::string human_bytes(std::uint64_t bytes);

}  // namespace tera
