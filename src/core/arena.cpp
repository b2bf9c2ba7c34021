#include "core/arena.h"

#include <algorithm>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define TERA_POISON(p, n) (source_.device() == Device::cpu ? __asan_poison_memory_region(p, n) : (void)0)
#define TERA_UNPOISON(p, n) (source_.device() == Device::cpu ? __asan_unpoison_memory_region(p, n) : (void)0)
#else
#define TERA_POISON(p, n) ((void)0)
#define TERA_UNPOISON(p, n) ((void)0)
#endif

namespace tera {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t gap = Arena::alignment;  // poisoned, so that running over an end is seen
#else
constexpr std::size_t gap = 0;
#endif

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

}  // namespace

Arena::~Arena() { free_blocks(); }

void Arena::free_blocks() {
    for (Block& b : blocks_) {
        TERA_UNPOISON(b.data, b.size);
        source_.give_back(b.data, b.size);
    }
    blocks_.clear();
}

std::size_t Arena::block_bytes(std::size_t bytes) {
    return bytes == 0 ? 0 : round_up(std::max(bytes, huge_page), huge_page);
}

void Arena::add_block(std::size_t bytes) {
    const std::size_t size = block_bytes(std::max<std::size_t>(bytes, 1));
    std::byte* p = source_.take(size);
    TERA_POISON(p, size);
    blocks_.push_back({p, size, 0});
    current_ = blocks_.size() - 1;
}

std::byte* Arena::allocate(std::size_t bytes) {
    const std::size_t behind = round_up(bytes + fence_.bytes, alignment) - bytes, need = bytes + behind + gap;
    total_ += need;
    peak_ = std::max(peak_, total_);
    // An address that is not null, so that what is there is told from what is absent; nobody may use it.
    if (kind_ == Kind::counting) return reinterpret_cast<std::byte*>(alignment + total_ - need);
    while (current_ < blocks_.size() && blocks_[current_].used + need > blocks_[current_].size) ++current_;
    if (current_ >= blocks_.size()) add_block(std::max(need, total_ / 2));
    Block& b = blocks_[current_];
    std::byte* p = b.data + b.used;
    b.used += need;
    TERA_UNPOISON(p, bytes);
    if (fence_.bytes > 0) {
        TERA_UNPOISON(p + bytes, behind);
        fence_.put(p + bytes, behind);
        if (fence_.handed_out) fence_.handed_out(p, bytes + behind);
        fences_.emplace_back(p + bytes, behind);
    }
    return p;
}

Tensor Arena::tensor(DType dtype, Shape shape) {
    return Tensor(allocate(static_cast<std::size_t>(shape.numel()) * size_of(dtype)), dtype, source_.device(), shape);
}

Tensor Arena::zeros(DType dtype, Shape shape) {
    Tensor t = tensor(dtype, shape);
    if (kind_ == Kind::real && t.bytes()) source_.zero(t.data, t.bytes());
    return t;
}

void Arena::set_fence(Fence fence) {
    TERA_CHECK(total_ == 0, total_, " bytes are in use");
    fence_ = std::move(fence);
}

void Arena::check_fences(std::size_t from) const {
    for (std::size_t i = from; i < fences_.size(); ++i) fence_.check(fences_[i].first, fences_[i].second);
}

void Arena::release(Mark mark) {
    check_fences(mark.fences);
    fences_.resize(std::min(fences_.size(), mark.fences));
    total_ = mark.total;
    if (blocks_.empty()) return;
    for (std::size_t i = mark.block; i < blocks_.size(); ++i) {
        std::size_t keep = i == mark.block ? mark.used : 0;
        TERA_POISON(blocks_[i].data + keep, blocks_[i].used - keep);
        blocks_[i].used = keep;
    }
    current_ = mark.block;
}

void Arena::reserve(std::size_t bytes) {
    TERA_CHECK(total_ == 0, total_, " bytes are in use");
    if (kind_ == Kind::counting || (blocks_.size() == 1 && blocks_[0].size >= bytes) || bytes == 0) return;
    free_blocks();
    current_ = 0;
    add_block(bytes);
}

std::size_t Arena::held() const {
    std::size_t sum = 0;
    for (const Block& b : blocks_) sum += b.size;
    return sum;
}

void Arena::reset() {
    release({});
    if (blocks_.size() > 1) {
        free_blocks();
        current_ = 0;
        add_block(peak_);
    }
}

}  // namespace tera
