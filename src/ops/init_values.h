// The four values that one philox call yields, for both backends.
#pragma once

#include "core/rng.h"
#include "ops/init.h"

namespace tera::ops {

TERA_HOST_DEVICE inline F32x4 random_values(const RandomFill& fill, std::uint64_t group) {
    U32x4 words = weight_words(fill.seed, fill.stream, group);
    F32x4 values;
    if (fill.normal) {
        values = normals(words);
    } else {
        for (int i = 0; i < 4; ++i) values.v[i] = fmaf(static_cast<float>(words.v[i]), 0x1p-31f, -1.0f);
    }
    for (float& v : values.v) v *= static_cast<float>(fill.scale);
    return values;
}

}  // namespace tera::ops
