// What an arena leaves free behind each allocation: nothing, or with ASan some bytes whose use is seen.
#pragma once

#include "core/arena.h"

namespace tera {

inline std::size_t arena_gap() {
    Arena arena(Arena::Kind::counting);
    arena.allocate(Arena::alignment);
    return arena.peak() - Arena::alignment;
}

}  // namespace tera
