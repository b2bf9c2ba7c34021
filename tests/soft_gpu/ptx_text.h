// PTX as text, taken apart: kernels, what they declare, and their instructions, still by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace soft_gpu {

struct Operand {
    enum class Kind {
        name,     ///< of a register, a variable or a label
        number,   ///< `bits`; real: which of the two it is written for shows in `real`
        list,     ///< {a, b, ...}
        address,  ///< [base + bits] or [base, {coordinates}]; an empty name: the number alone
        sink      ///< _
    };
    Kind kind = Kind::sink;
    std::string name;              ///< of an address: its base
    std::string also;              ///< the second of two results: a|b
    std::uint64_t bits = 0;        ///< a number; of an address: what is added to its base
    char real = 0;                 ///< 'f' or 'd': the bits are those of such a number
    std::vector<Operand> members;  ///< of a list; of an address: its coordinates
};

struct Instruction {
    std::vector<std::string> parts;  ///< of its name: what stands between the dots
    std::vector<Operand> operands;
    std::string guard;  ///< a predicate, or empty
    bool guard_is_false = false;
    int line = 0;

    bool has(std::string_view part) const {
        for (const std::string& p : parts)
            if (p == part) return true;
        return false;
    }
    std::string text() const {
        std::string all;
        for (const std::string& p : parts) all += (all.empty() ? "" : ".") + p;
        return all;
    }
};

/// A variable in shared or local memory, or a parameter.
struct Variable {
    std::string name;
    std::size_t bytes = 0, alignment = 1;
    bool dynamic = false;  ///< shared memory whose size the launch says
};

struct Register {
    std::string name;
    std::string type;  ///< "pred", "b32", ...
};

struct Label {
    std::string name;
    std::size_t at = 0;  ///< the instruction behind it
};

struct Kernel {
    std::string name;
    std::vector<Variable> parameters, shared, local;
    std::vector<Register> registers;
    std::vector<Instruction> instructions;
    std::vector<Label> labels;
    unsigned most_threads = 0;
    unsigned cluster = 1;  ///< blocks
};

struct KernelText {
    std::string name, text;
    int line = 0;
};

struct ModuleText {
    std::vector<KernelText> kernels;
    std::vector<Variable> shared;
};

/// Finds kernels and variables of the file; Fault for what this machine does not have, such as functions.
ModuleText split_module(std::string_view ptx);
/// Names declared within braces are told apart from others of the same name.
Kernel parse_kernel(const KernelText& text);

}  // namespace soft_gpu
