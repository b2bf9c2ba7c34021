// SequencePiece: where rows that a rank holds stand in the whole sequence.
#pragma once

#include <cstdint>

#include "core/rng.h"

namespace tera::ops {

/// Two runs of the sequence, the second behind the first, of which rows from `offset` on are here.
struct SequencePiece {
    std::int64_t offset = 0;
    std::int64_t run = std::int64_t{1} << 62;  ///< length of the first run
    std::int64_t first = 0, second = 0;        ///< where the runs begin

    TERA_HOST_DEVICE std::int64_t at(std::int64_t s) const {
        s += offset;
        return s < run ? first + s : second + (s - run);
    }
    /// How many of the rows here stand before `position`, were there rows without end.
    TERA_HOST_DEVICE std::int64_t before(std::int64_t position) const {
        std::int64_t s = position - first;
        if (s >= run) s = run + (position > second ? position - second : 0);
        return s > offset ? s - offset : 0;
    }
};

}  // namespace tera::ops
