// safetensors: eight bytes of header length (little-endian), a JSON header {name: {dtype, shape, data_offsets}}, then
// the tensors' bytes one after the other without gaps.
//
// Reading checks everything the header says against the file before anything is believed. Data is read with pread
// rather than mapped: straight into its destination, unaligned files included, and a file that shrinks or a disk that
// fails is an error, not a SIGBUS. Writing puts any byte range at its place, so that many ranks can fill one file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/tensor.h"
#include "io/crc32c.h"
#include "io/durable_file.h"

namespace tera {

/// "F32", "BF16", ...
const char* safetensors_dtype(DType dtype);

struct SafetensorsEntry {
    std::string name;
    std::string dtype_name;           ///< as in the file: "F32", "F8_E4M3"
    std::optional<DType> dtype;       ///< if it is one of ours
    std::vector<std::int64_t> shape;  ///< of any rank
    std::uint64_t offset = 0;         ///< in the file
    std::uint64_t bytes = 0;

    std::string shape_text() const;  ///< "[2,3]", as Shape prints
};

/// One file, open for reading.
class SafetensorsFile {
  public:
    /// UsageError, naming the path and the tensor, for anything that is not a whole and consistent file.
    explicit SafetensorsFile(const std::string& path);
    ~SafetensorsFile();
    SafetensorsFile(const SafetensorsFile&) = delete;
    SafetensorsFile& operator=(const SafetensorsFile&) = delete;

    const std::string& path() const { return path_; }
    const std::vector<SafetensorsEntry>& entries() const { return entries_; }  ///< in the order of their data
    const SafetensorsEntry* find(const std::string& name) const;               ///< null if there is none
    const std::map<std::string, std::string>& metadata() const { return metadata_; }

    /// Reads bytes [first, first + out.size()) of the tensor. May be called from several threads.
    void read(const SafetensorsEntry& entry, std::uint64_t first, std::span<std::byte> out) const;

  private:
    void parse_header(std::string_view header, std::uint64_t data_begin, std::uint64_t file_size);
    void check_layout(std::uint64_t data_begin, std::uint64_t file_size);

    std::string path_;
    int fd_ = -1;
    std::vector<SafetensorsEntry> entries_;
    std::unordered_map<std::string, std::size_t> by_name_;
    std::map<std::string, std::string> metadata_;
};

/// The tensors of a model in one file (STEM.safetensors) or several (STEM.safetensors.index.json names them).
class SafetensorsSet {
  public:
    struct Found {
        const SafetensorsFile* file = nullptr;
        const SafetensorsEntry* entry = nullptr;
        explicit operator bool() const { return entry != nullptr; }
    };

    static bool exists(const std::string& folder, const std::string& stem);
    /// UsageError if neither is there, a shard is missing, two hold the same tensor, or one that the index lists is not
    /// in its file.
    SafetensorsSet(const std::string& folder, const std::string& stem);

    Found find(const std::string& name) const;
    std::vector<std::string> names() const;            ///< sorted
    const std::string& path() const { return path_; }  ///< of the file or the index, for errors

  private:
    void add(const std::string& path);
    void check_index(const nlohmann::json& weight_map, const std::string& folder) const;

    std::string path_;
    std::vector<std::unique_ptr<SafetensorsFile>> files_;
    std::map<std::string, Found> by_name_;
};

struct TensorSpec {
    std::string name;
    DType dtype = DType::f32;
    Shape shape;
    std::uint64_t bytes() const { return static_cast<std::uint64_t>(shape.numel()) * size_of(dtype); }
};

/// A file of the given tensors, in that order.
class SafetensorsWriter {
  public:
    /// create: takes the disk space and writes the header; join: another rank has done so.
    SafetensorsWriter(const std::string& path, std::vector<TensorSpec> tensors,
                      const std::map<std::string, std::string>& metadata,
                      OutputFile::Mode mode = OutputFile::Mode::create);

    /// Puts `data` at byte `first` of the tensor.
    void write(const std::string& name, std::uint64_t first, std::span<const std::byte> data);
    void sync() { out_.sync(); }
    void close() { out_.close(); }

    /// CRC-32C of a tensor that was written whole by this writer.
    std::uint32_t checksum(const std::string& name) const;
    std::uint64_t file_size() const { return file_size_; }
    const std::string& path() const { return out_.path(); }
    const std::vector<TensorSpec>& tensors() const { return tensors_; }

  private:
    std::size_t index_of(const std::string& name) const;

    std::vector<TensorSpec> tensors_;
    std::vector<std::uint64_t> offsets_;
    std::vector<RangeChecksum> checksums_;
    std::unordered_map<std::string, std::size_t> by_name_;
    std::uint64_t file_size_ = 0;
    OutputFile out_;
};

/// The header of such a file, length field included; a multiple of 64 bytes, so that all data is aligned.
std::string safetensors_header(const std::vector<TensorSpec>& tensors,
                               const std::map<std::string, std::string>& metadata);

struct SafetensorsShard {
    std::string file;  ///< "model.safetensors" or "model-00001-of-00003.safetensors"
    std::vector<TensorSpec> tensors;
};

/// Cuts the list into files of at most `shard_bytes` (a tensor is never cut), keeping the order.
std::vector<SafetensorsShard> plan_shards(const std::vector<TensorSpec>& tensors, const std::string& stem,
                                          std::uint64_t shard_bytes);

/// The content of STEM.safetensors.index.json.
nlohmann::json shard_index(const std::vector<SafetensorsShard>& shards);

}  // namespace tera
