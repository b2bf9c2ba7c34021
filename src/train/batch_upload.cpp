#include "train/batch_upload.h"

#include <array>

namespace tera {
namespace {

template <class T>
Uploader::Bytes bytes_of(const T* data, std::int64_t n) {
    return data == nullptr ? Uploader::Bytes{} : std::as_bytes(std::span(data, static_cast<std::size_t>(n)));
}

template <class T>
void point(const T*& to, const std::byte* place) {
    to = reinterpret_cast<const T*>(place);
}

}  // namespace

MicroBatch BatchUpload::put(const MicroBatch& host) {
    const std::int64_t T = host.S * host.B;
    const std::array<Uploader::Bytes, 6> pieces = {bytes_of(host.tokens, T),    bytes_of(host.labels, T),
                                                   bytes_of(host.loss_mask, T), bytes_of(host.positions, T),
                                                   bytes_of(host.doc_start, T), bytes_of(host.sample, host.B)};
    const std::vector<const std::byte*> places = uploader_.put(pieces);
    MicroBatch device = host;
    point(device.tokens, places[0]);
    point(device.labels, places[1]);
    point(device.loss_mask, places[2]);
    point(device.positions, places[3]);
    point(device.doc_start, places[4]);
    point(device.sample, places[5]);
    return device;
}

}  // namespace tera
