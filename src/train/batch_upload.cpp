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
    ops::DocumentList documents;
    const bool whole = host.length == 0 || host.length == host.S;
    if (lists_documents_ && whole && host.doc_start != nullptr)
        documents = ops::list_documents(host.doc_start, host.S, host.B, document_rows_);
    const std::array<Uploader::Bytes, 7> pieces = {bytes_of(host.tokens, T),
                                                   bytes_of(host.labels, T),
                                                   bytes_of(host.loss_mask, T),
                                                   bytes_of(host.positions, T),
                                                   bytes_of(host.doc_start, T),
                                                   bytes_of(host.sample, host.B),
                                                   bytes_of(documents.rows, 2 * documents.count)};
    const std::vector<const std::byte*> places = uploader_.put(pieces);
    MicroBatch device = host;
    point(device.tokens, places[0]);
    point(device.labels, places[1]);
    point(device.loss_mask, places[2]);
    point(device.positions, places[3]);
    point(device.doc_start, places[4]);
    point(device.sample, places[5]);
    device.documents = documents;
    point(device.documents.rows, places[6]);
    return device;
}

}  // namespace tera
