// From instructions by name to steps: registers get their places, numbers become constants, each kind of instruction
// finds its handler.
#pragma once

#include <map>
#include <string>

#include "soft_gpu/machine.h"
#include "soft_gpu/ptx_text.h"
#include "soft_gpu/registers.h"

namespace soft_gpu {

class Translator {
  public:
    Translator(const Kernel& kernel, const std::vector<Variable>& shared_of_module);
    Function translate();

    /// What an operand has, for an instruction whose operands have so many bytes (1: a predicate).
    Value value(const Operand& o, std::size_t bytes, char real = 0);
    /// A register that is written to; none for a sink.
    Value destination(const Operand& o) { return o.kind == Operand::Kind::sink ? Value{} : written(o.name); }
    /// The same where what it holds is needed too.
    Value changed(const Operand& o) {
        uses_.reads.push_back(place_of(o.name).at.at);
        return destination(o);
    }
    /// The second result, of a|b.
    Value second(const Operand& o) { return o.also.empty() ? Value{} : written(o.also); }
    bool is_wide(const Operand& o);
    /// Base and offset of an address.
    void address(Step& s, const Operand& o);
    /// Further values of a step; where they begin.
    std::uint32_t keep(const std::vector<Value>& values);
    std::uint32_t target(const std::string& label) const;
    /// The instruction at hand gives sums that come later; or it waits for such, of all instructions.
    void gives_later(const std::vector<Value>& sums);
    void waits_for_sums() { waits_for_sums_ = true; }

  private:
    struct Place {
        Value at;
        std::size_t bytes = 4;
    };
    const Place& place_of(const std::string& name);
    Value written(const std::string& name);
    /// What the instruction at hand reads.
    Value noted(Value v);
    Value take_register(std::size_t bytes);
    Value constant(std::uint64_t bits, std::size_t bytes);
    Value filled(const std::string& name, std::size_t bytes);
    void lay_out();

    const Kernel& kernel_;
    const std::vector<Variable>& shared_of_module_;
    Function f_;
    std::map<std::string, Place> places_;
    std::map<std::pair<std::uint64_t, std::size_t>, Value> constants_;
    std::map<std::pair<std::string, std::size_t>, Value> filled_;
    std::map<std::string, std::pair<Filled::What, std::uint64_t>> symbols_;
    std::map<std::string, std::uint32_t> labels_;
    Uses uses_;  ///< of the instruction at hand
    bool waits_for_sums_ = false;
    std::vector<std::int32_t> sums_;
};

// Each knows some kinds of instructions: false for others.
bool translate_arithmetic(Translator& t, const Instruction& i, Step& s);
bool translate_conversion(Translator& t, const Instruction& i, Step& s);
bool translate_memory(Translator& t, const Instruction& i, Step& s);
bool translate_control(Translator& t, const Instruction& i, Step& s);
bool translate_asynchronous(Translator& t, const Instruction& i, Step& s);
bool translate_matrix(Translator& t, const Instruction& i, Step& s);

/// Bytes of a type's name: "u32" has 4.
std::size_t bytes_of_type(const std::string& type);

}  // namespace soft_gpu
