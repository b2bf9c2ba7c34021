#include "core/uploader.h"

#include <algorithm>

#ifdef TERA_WITH_CUDA
#include "core/cuda/upload_slots.h"
#endif

namespace tera {

#ifdef TERA_WITH_CUDA

namespace {

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// For some pieces of so many bytes together, each of which begins on its own.
std::size_t room_for(std::size_t bytes) { return aligned(bytes) + 8 * 64; }

}  // namespace

struct Uploader::Slots : UploadSlots {
    using UploadSlots::UploadSlots;
};

#else

struct Uploader::Slots {};

#endif

Uploader::Uploader([[maybe_unused]] const Engine& engine, [[maybe_unused]] int held) {
#ifdef TERA_WITH_CUDA
    if (engine.gpu()) slots_ = std::make_unique<Slots>(*engine.gpu(), held);
#endif
}
Uploader::~Uploader() = default;

std::vector<const std::byte*> Uploader::put(std::span<const Bytes> pieces) {
    std::vector<const std::byte*> places;
    if (!slots_) {
        for (const Bytes& piece : pieces) places.push_back(piece.empty() ? nullptr : piece.data());
        return places;
    }
#ifdef TERA_WITH_CUDA
    std::size_t total = 0;
    for (const Bytes& piece : pieces) total += aligned(piece.size());
    const UploadSlots::Slot slot = slots_->begin(total);
    std::size_t at = 0;
    for (const Bytes& piece : pieces) {
        if (piece.empty()) {
            places.push_back(nullptr);
            continue;
        }
        std::copy(piece.begin(), piece.end(), slot.host + at);
        places.push_back(slot.device + at);
        at += aligned(piece.size());
    }
    slots_->send(total);
#endif
    return places;
}

void Uploader::reserve([[maybe_unused]] std::size_t bytes_per_put) {
#ifdef TERA_WITH_CUDA
    if (slots_) slots_->reserve(room_for(bytes_per_put));
#endif
}

std::size_t Uploader::device_bytes([[maybe_unused]] std::size_t bytes_per_put, [[maybe_unused]] int held) {
#ifdef TERA_WITH_CUDA
    return static_cast<std::size_t>(UploadSlots::count(held)) * room_for(bytes_per_put);
#else
    return 0;
#endif
}

}  // namespace tera
