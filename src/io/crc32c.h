// CRC-32C (Castagnoli, reflected, initial and final complement): the checksum of iSCSI, ext4 and of our checkpoints.
// Processors compute it at memory speed, and checksums of neighbouring ranges combine, so that many writers can each
// sum up their own range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tera {

/// Checksum of (what gave `before`, then data); of nothing: 0.
std::uint32_t crc32c(std::uint32_t before, std::span<const std::byte> data);

/// Checksum of A then B from the checksums of A and of B.
std::uint32_t crc32c_combine(std::uint32_t a, std::uint32_t b, std::uint64_t length_of_b);

/// "0badcafe"
std::string crc32c_text(std::uint32_t value);

/// The checksum of something that is written range by range in any order.
class RangeChecksum {
  public:
    void add(std::uint64_t offset, std::span<const std::byte> data);
    /// A range that somebody else has summed up.
    void add(std::uint64_t offset, std::uint64_t length, std::uint32_t crc);
    /// True when every byte of [0, size) was added exactly once.
    bool covers(std::uint64_t size) const;
    std::uint32_t value() const;

  private:
    struct Range {
        std::uint64_t offset, length;
        std::uint32_t crc;
    };
    std::vector<Range> in_order() const;
    std::vector<Range> ranges_;
};

}  // namespace tera
