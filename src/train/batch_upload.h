// BatchUpload: micro-batches to where the model runs.
#pragma once

#include "core/uploader.h"
#include "model/decoder.h"

namespace tera {

class BatchUpload {
  public:
    explicit BatchUpload(const Engine& engine) : uploader_(engine) {}

    /// The batch as the device sees it; holds until the put() after the next. On the CPU it is the batch itself.
    MicroBatch put(const MicroBatch& host);

  private:
    Uploader uploader_;
};

}  // namespace tera
