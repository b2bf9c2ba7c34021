// Arena: memory handed out by moving a pointer, given back all at once or to a mark.
//
// An arena grows by whole blocks while its need is not known; reset() merges them into one block of the peak size, so
// from the second use on there is a single block and no allocation. A counting arena owns no memory and only measures:
// the dry run that plans memory uses it.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "core/memory.h"
#include "core/tensor.h"

namespace tera {

class Arena {
  public:
    enum class Kind { real, counting };
    static constexpr std::size_t alignment = 64;

    explicit Arena(Kind kind = Kind::real, MemorySource& source = host_memory()) : kind_(kind), source_(source) {}
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    std::byte* allocate(std::size_t bytes);
    Tensor tensor(DType dtype, Shape shape);
    Tensor zeros(DType dtype, Shape shape);

    struct Mark {
        std::size_t block = 0, used = 0, total = 0, fences = 0;
    };
    Mark mark() const { return {current_, blocks_.empty() ? 0 : blocks_[current_].used, total_, fences_.size()}; }
    void release(Mark mark);
    void reset();
    /// Makes one block of at least this size, so that nothing needs to be allocated later. Only while nothing is in
    /// use.
    void reserve(std::size_t bytes);
    /// What is taken from the source for so many bytes: whole pages.
    static std::size_t block_bytes(std::size_t bytes);

    /// For tests that look for writes over an end: behind each allocation so many bytes and more are `put` down, and
    /// looked at by `check` when they are given back or check_fences() is called. Only while nothing is in use.
    struct Fence {
        std::size_t bytes = 0;
        std::function<void(std::byte*, std::size_t)> put, check;
        /// Is told of memory that is handed out, what is put down behind it included: there is no value in it yet.
        std::function<void(std::byte*, std::size_t)> handed_out = {};
    };
    void set_fence(Fence fence);
    void check_fences(std::size_t from = 0) const;

    std::size_t used() const { return total_; }
    /// Bytes taken from the source.
    std::size_t held() const;
    std::size_t peak() const { return peak_; }
    Kind kind() const { return kind_; }
    MemorySource& source() const { return source_; }

  private:
    struct Block {
        std::byte* data;
        std::size_t size, used;
    };
    void add_block(std::size_t bytes);
    void free_blocks();

    Kind kind_;
    MemorySource& source_;
    std::vector<Block> blocks_;
    Fence fence_;
    std::vector<std::pair<std::byte*, std::size_t>> fences_;
    std::size_t current_ = 0, total_ = 0, peak_ = 0;
};

/// Gives everything allocated in its lifetime back to the arena.
class ArenaScope {
  public:
    explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
    ~ArenaScope() { arena_.release(mark_); }
    ArenaScope(const ArenaScope&) = delete;
    ArenaScope& operator=(const ArenaScope&) = delete;

  private:
    Arena& arena_;
    Arena::Mark mark_;
};

}  // namespace tera
