#include "soft_gpu/memory.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <new>
#include <optional>
#include <utility>

namespace soft_gpu {
namespace {

constexpr std::size_t alignment = 256;
constexpr std::size_t red_zone = 256;      // on both sides: an overrun ends in no allocation
constexpr int never_written_value = 0xff;  // NaN in every float type

std::uintptr_t number(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

bool holds(const Memory::Block& block, const void* data, std::size_t bytes) {
    const std::uintptr_t begin = number(block.data), p = number(data);
    return p >= begin && bytes <= block.bytes && p - begin <= block.bytes - bytes;
}

bool all_written(const std::uint8_t* flags, std::size_t n) {
    constexpr std::uint64_t eight = 0x0101010101010101u;
    for (; n >= 8; n -= 8, flags += 8) {
        std::uint64_t word;
        std::memcpy(&word, flags, 8);
        if (word != eight) return false;
    }
    for (std::size_t i = 0; i < n; ++i) {
        if (!flags[i]) return false;
    }
    return true;
}

std::string range_text(const void* data, std::size_t bytes, const char* what) {
    char text[96];
    std::snprintf(text, sizeof text, " of %zu bytes at 0x%zx", bytes, static_cast<std::size_t>(number(data)));
    return what + std::string(text);
}

std::string block_text(const Memory::Block& block) {
    return (block.of_host ? "host memory of " : "an allocation of ") + std::to_string(block.bytes) + " bytes";
}

/// Where [data, data + bytes) is, seen from the block that it is nearest to.
std::string place_text(const Memory::Block& block, const void* data, std::size_t bytes) {
    const std::uintptr_t begin = number(block.data), end = begin + block.bytes, p = number(data);
    if (p < begin) return std::to_string(begin - p) + " bytes before the start of " + block_text(block);
    if (p >= end) return std::to_string(p - end) + " bytes behind the end of " + block_text(block);
    return "its last " + std::to_string(p - begin + bytes - block.bytes) + " bytes are behind the end of " +
           block_text(block);
}

/// Large blocks of the device that were given back last, for allocations of the same size: pages from the system cost
/// ten times as much as filling them does, and every test makes a GPU anew.
class Spares {
  public:
    static Spares& get() {
        static Spares& only = *new Spares;
        return only;
    }
    void keep(Memory::Block&& block) {
        if (block.of_host || block.bytes < least || block.bytes > largest) return;
        if (kept_.size() == most) kept_.erase(kept_.begin());
        kept_.push_back(std::move(block));
    }
    std::optional<Memory::Block> take(std::size_t bytes) {
        for (auto at = kept_.begin(); at != kept_.end(); ++at) {
            if (at->bytes != bytes) continue;
            std::optional<Memory::Block> out(std::move(*at));
            kept_.erase(at);
            std::fill(out->written.begin(), out->written.end(), std::uint8_t{0});
            out->order.clear();
            return out;
        }
        return std::nullopt;
    }

  private:
    static constexpr std::size_t least = std::size_t{1} << 20, largest = std::size_t{256} << 20, most = 4;
    std::vector<Memory::Block> kept_;
};

/// Nothing if the system has not so much.
std::optional<Memory::Block> fresh(std::size_t bytes, bool of_host) {
    std::unique_ptr<std::byte[]> owned(new (std::nothrow) std::byte[bytes + 2 * red_zone + alignment]);
    if (!owned) return std::nullopt;
    const std::uintptr_t first = number(owned.get()) + red_zone;
    std::byte* const data = owned.get() + red_zone + (alignment - first % alignment) % alignment;
    std::vector<std::uint8_t> written(of_host ? 0 : bytes);
    return Memory::Block{data, bytes, of_host, std::move(owned), std::move(written), StreamOrder::Memory(bytes)};
}

std::size_t distance(const Memory::Block& block, const void* data) {
    const std::uintptr_t begin = number(block.data), end = begin + block.bytes, p = number(data);
    return p < begin ? begin - p : p >= end ? p - end : 0;
}

}  // namespace

Memory& Memory::get() {
    static Memory& only = *new Memory;  // never destroyed: the program's last calls come when it ends
    return only;
}

std::byte* Memory::allocate(std::size_t bytes, bool of_host) {
    if (bytes == 0 || bytes > total_bytes || (!of_host && bytes > total_bytes - taken_)) return nullptr;
    std::optional<Block> block;
    if (!of_host) block = Spares::get().take(bytes);
    if (!block) block = fresh(bytes, of_host);
    if (!block) return nullptr;
    std::byte* const data = block->data;
    std::memset(data, of_host ? 0 : never_written_value, bytes);
    blocks_.emplace(data + bytes, std::move(*block));
    if (!of_host) taken_ += bytes;
    return data;
}

bool Memory::release(const void* data) {
    const auto at = blocks_.upper_bound(static_cast<const std::byte*>(data));
    if (at == blocks_.end() || at->second.data != data || !at->second.owned) return false;
    if (at->second.of_host)
        StreamOrder::get().give_back(at->second.order);
    else
        StreamOrder::get().host_waits_for_all();  // as cudaFree does
    if (!at->second.of_host) taken_ -= at->second.bytes;
    if (last_ == &at->second) last_ = nullptr;
    Spares::get().keep(std::move(at->second));
    blocks_.erase(at);
    return true;
}

void Memory::lend(const void* data, std::size_t bytes) {
    if (bytes == 0 || find(data, bytes)) return;
    std::byte* const begin = const_cast<std::byte*>(static_cast<const std::byte*>(data));
    blocks_.emplace(begin + bytes, Block{begin, bytes, true, nullptr, {}, StreamOrder::Memory()});
}

void Memory::take_back(const void* data) {
    const auto at = blocks_.upper_bound(static_cast<const std::byte*>(data));
    if (at == blocks_.end() || at->second.data != data || at->second.owned) return;
    if (last_ == &at->second) last_ = nullptr;
    blocks_.erase(at);
}

Memory::Block* Memory::find(const void* data, std::size_t bytes) {
    if (last_ && holds(*last_, data, bytes)) return last_;
    const auto at = blocks_.upper_bound(static_cast<const std::byte*>(data));
    if (at == blocks_.end() || !holds(at->second, data, bytes)) return nullptr;
    return last_ = &at->second;
}

Memory::Block& Memory::must_find(const void* data, std::size_t bytes, const char* what) {
    if (Block* block = find(data, bytes)) return *block;
    const Block* nearest = nullptr;
    const auto behind = blocks_.upper_bound(static_cast<const std::byte*>(data));
    if (behind != blocks_.end()) nearest = &behind->second;
    if (behind != blocks_.begin()) {
        const Block& before = std::prev(behind)->second;
        if (!nearest || distance(before, data) < distance(*nearest, data)) nearest = &before;
    }
    std::string text = range_text(data, bytes, what) + ": ";
    if (number(data) < 4096)
        text += "a null pointer, or one counted from it";
    else if (!nearest)
        text += "in no allocation";
    else if (distance(*nearest, data) <= red_zone)
        text += place_text(*nearest, data, bytes);
    else
        text += "in no allocation; the nearest is " + place_text(*nearest, data, bytes);
    throw Fault(text);
}

void Memory::read(const void* data, std::size_t bytes, const char* what) {
    Block& block = must_find(data, bytes, what);
    block.touch(data, bytes, false);
    if (block.written.empty()) return;
    const std::size_t offset = number(data) - number(block.data);
    const std::uint8_t* const flags = block.written.data() + offset;
    if (all_written(flags, bytes)) return;
    std::size_t first = 0;
    while (flags[first]) ++first;
    throw Fault(range_text(data, bytes, what) + ", offset " + std::to_string(offset + first) + " of " +
                block_text(block) + ": never written");
}

void Memory::wrote(void* data, std::size_t bytes, const char* what) {
    Block& block = must_find(data, bytes, what);
    block.touch(data, bytes, true);
    if (!block.written.empty()) std::memset(block.written.data() + (number(data) - number(block.data)), 1, bytes);
}

void Memory::forget_written(void* data, std::size_t bytes) {
    Block& block = must_find(data, bytes, "handing out");
    if (block.written.empty()) return;
    std::fill_n(block.written.data() + (number(data) - number(block.data)), bytes, std::uint8_t{0});
}

void Memory::copy(void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    if (number(to) < number(from) + bytes && number(from) < number(to) + bytes)
        throw Fault(range_text(to, bytes, "copy") + ": it overlaps what is copied");
    // A range that begins in an allocation has to end there too.
    Block* const target = find(to, 1) ? &must_find(to, bytes, "write by a copy") : nullptr;
    Block* const source = find(from, 1) ? &must_find(from, bytes, "read by a copy") : nullptr;
    if (source) source->touch(from, bytes, false);
    if (target) target->touch(to, bytes, true);
    std::memcpy(to, from, bytes);
    if (!target || target->written.empty()) return;
    std::uint8_t* const flags = target->written.data() + (number(to) - number(target->data));
    if (source && !source->written.empty())
        std::memcpy(flags, source->written.data() + (number(from) - number(source->data)), bytes);
    else
        std::memset(flags, 1, bytes);
}

}  // namespace soft_gpu
