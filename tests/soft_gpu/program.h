// A kernel, translated: steps that a warp makes, one after another, for all its lanes at once.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "soft_gpu/launch.h"

namespace soft_gpu {

constexpr int lanes = 32;
using Mask = std::uint32_t;
constexpr Mask all_lanes = ~Mask{0};

struct Warp;
struct Step;

enum class Outcome {
    next,   ///< to the step behind it
    waits,  ///< it could not be made; again later
    asks,   ///< it was made, and has found that others must do something first: it may ask again, and again
    moved   ///< the step has said itself where its lanes go
};
/// Makes a step for the lanes of the mask: those that are here and that its guard lets through.
using Handler = Outcome (*)(Warp&, const Step&, Mask);

/// Where the 32 lanes of a value lie: in words of the warp's registers or, below zero, of the function's constants. A
/// lane has a word; of a type of eight bytes two.
struct Value {
    static constexpr std::int32_t none = INT32_MIN;
    std::int32_t at = none;
    explicit operator bool() const { return at != none; }
};

struct Step {
    Handler run = nullptr;
    Value d, a, b, c, guard;
    bool guard_is_false = false;
    std::uint8_t count = 1;                   ///< elements of a vector
    std::uint8_t bytes = 4;                   ///< of an element in memory
    std::uint8_t space = 0;                   ///< of an address: Warp::Space
    bool wide = false, wide_address = false;  ///< the registers, the address: of eight bytes
    std::uint32_t target = 0;                 ///< of a branch
    std::uint32_t more = 0;                   ///< the first of further values in Function::values
    std::int64_t number = 0;                  ///< added to an address; a count that is part of the instruction
    int line = 0;
};

/// A register that has its value when a warp begins.
struct Filled {
    enum class What {
        tid_x,
        tid_y,
        tid_z,
        ntid_x,
        ntid_y,
        ntid_z,
        ctaid_x,
        ctaid_y,
        ctaid_z,
        nctaid_x,
        nctaid_y,
        nctaid_z,
        laneid,
        cluster_ctarank,
        shared,
        local,
        parameters
    };
    What what;
    Value at;
    bool wide = false;
    std::uint64_t offset = 0;  ///< of a variable in its memory
};

struct Function {
    std::string name;
    std::vector<Step> steps;
    std::vector<std::string> names;  ///< of the steps' instructions
    std::vector<Value> values;
    std::vector<std::uint32_t> constants;
    std::vector<Filled> filled;
    std::vector<std::size_t> parameter_offsets, parameter_sizes;
    std::size_t register_words = 0, parameter_bytes = 0, shared_bytes = 0, local_bytes = 0;
    unsigned most_threads = 0, cluster = 1;
    std::vector<bool> wide_registers;  ///< while it is being translated: of eight bytes, by their places / lanes

    bool wide_at(std::int32_t place) const { return wide_registers[static_cast<std::size_t>(place) / lanes]; }
};

/// A lane's share of a value: types smaller than a word lie in the low bits of one.
template <class T>
using Cell = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <class T>
inline T from_cell(Cell<T> cell) {
    if constexpr (sizeof(T) == sizeof(cell))
        return std::bit_cast<T>(cell);
    else if constexpr (sizeof(T) == 2)
        return std::bit_cast<T>(static_cast<std::uint16_t>(cell));
    else
        return std::bit_cast<T>(static_cast<std::uint8_t>(cell));
}
template <class T>
inline Cell<T> to_cell(T value) {
    if constexpr (sizeof(T) == sizeof(Cell<T>))
        return std::bit_cast<Cell<T>>(value);
    else if constexpr (sizeof(T) == 2)
        return std::bit_cast<std::uint16_t>(value);
    else
        return std::bit_cast<std::uint8_t>(value);
}

}  // namespace soft_gpu
