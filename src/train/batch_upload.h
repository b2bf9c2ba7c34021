// BatchUpload: micro-batches to where the model runs.
#pragma once

#include <vector>

#include "core/uploader.h"
#include "model/decoder.h"

namespace tera {

class BatchUpload {
  public:
    /// held: for how many put()s a batch is read, its own included.
    explicit BatchUpload(const Engine& engine, int held = 1)
        : uploader_(engine, held), lists_documents_(engine.device() != Device::cpu) {}

    /// Takes all memory at once for batches of at most so many bytes.
    void reserve(std::size_t bytes) { uploader_.reserve(bytes); }
    /// The batch as the device sees it, for as long as it is held. On the CPU it is the batch itself.
    MicroBatch put(const MicroBatch& host);

  private:
    Uploader uploader_;
    bool lists_documents_;
    std::vector<std::int32_t> document_rows_;
};

}  // namespace tera
