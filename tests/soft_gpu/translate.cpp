#include "soft_gpu/translate.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace soft_gpu {

std::size_t bytes_of_type(const std::string& type) {
    if (type == "pred") return 1;
    if (type.ends_with("x2")) return 4;
    std::size_t digits = type.size();
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(type[digits - 1]))) --digits;
    return digits < type.size() && digits > 0 ? std::stoul(type.substr(digits)) / 8 : 0;
}

Translator::Translator(const Kernel& kernel, const std::vector<Variable>& shared_of_module)
    : kernel_(kernel), shared_of_module_(shared_of_module) {
    f_.name = kernel.name;
    f_.most_threads = kernel.most_threads;
    f_.cluster = kernel.cluster;
    lay_out();
    for (const Register& r : kernel.registers) {
        const std::size_t bytes = bytes_of_type(r.type);
        places_[r.name] = {take_register(bytes), bytes};
    }
    for (const Label& l : kernel.labels) labels_[l.name] = static_cast<std::uint32_t>(l.at);
}

/// Variables in their memories. Shared memory of the file counts where the kernel names it; dynamic comes last.
void Translator::lay_out() {
    const auto place = [](std::size_t& end, const Variable& v) {
        const std::size_t at = (end + v.alignment - 1) / v.alignment * v.alignment;
        end = at + v.bytes;
        return at;
    };
    for (const Variable& v : kernel_.parameters) {
        const std::size_t at = place(f_.parameter_bytes, v);
        f_.parameter_offsets.push_back(at);
        f_.parameter_sizes.push_back(v.bytes);
        symbols_[v.name] = {Filled::What::parameters, at};
    }
    for (const Variable& v : kernel_.local) symbols_[v.name] = {Filled::What::local, place(f_.local_bytes, v)};
    f_.local_bytes = (f_.local_bytes + 15) / 16 * 16;
    std::map<std::string, bool> named;
    const auto note = [&](const Operand& o) { named[o.name] = true; };
    for (const Instruction& i : kernel_.instructions)
        for (const Operand& o : i.operands) {
            note(o);
            for (const Operand& m : o.members) note(m);
        }
    std::vector<Variable> shared = kernel_.shared;
    for (const Variable& v : shared_of_module_)
        if (named.contains(v.name)) shared.push_back(v);
    for (const bool dynamic : {false, true})
        for (const Variable& v : shared)
            if (v.dynamic == dynamic) {
                if (dynamic) {
                    f_.shared_bytes = (f_.shared_bytes + v.alignment - 1) / v.alignment * v.alignment;
                    symbols_[v.name] = {Filled::What::shared, f_.shared_bytes};
                } else {
                    symbols_[v.name] = {Filled::What::shared, place(f_.shared_bytes, v)};
                }
            }
}

Value Translator::take_register(std::size_t bytes) {
    const Value v{static_cast<std::int32_t>(f_.register_words)};
    f_.register_words += bytes == 8 ? 2 * lanes : lanes;
    f_.wide_registers.resize(f_.register_words / lanes, bytes == 8);
    return v;
}

Value Translator::constant(std::uint64_t bits, std::size_t bytes) {
    const std::size_t words = bytes == 8 ? 2 : 1;
    auto [at, fresh] = constants_.try_emplace({bits, words});
    if (fresh) {
        at->second.at = ~static_cast<std::int32_t>(f_.constants.size());
        for (int l = 0; l < lanes; ++l)
            for (std::size_t w = 0; w < words; ++w)
                f_.constants.push_back(static_cast<std::uint32_t>(w == 0 ? bits : bits >> 32));
    }
    return at->second;
}

/// A variable's address, or what a thread is.
Value Translator::filled(const std::string& name, std::size_t bytes) {
    static const std::map<std::string, Filled::What> known = {
        {"%tid.x", Filled::What::tid_x},       {"%tid.y", Filled::What::tid_y},
        {"%tid.z", Filled::What::tid_z},       {"%ntid.x", Filled::What::ntid_x},
        {"%ntid.y", Filled::What::ntid_y},     {"%ntid.z", Filled::What::ntid_z},
        {"%ctaid.x", Filled::What::ctaid_x},   {"%ctaid.y", Filled::What::ctaid_y},
        {"%ctaid.z", Filled::What::ctaid_z},   {"%nctaid.x", Filled::What::nctaid_x},
        {"%nctaid.y", Filled::What::nctaid_y}, {"%nctaid.z", Filled::What::nctaid_z},
        {"%laneid", Filled::What::laneid},     {"%cluster_ctarank", Filled::What::cluster_ctarank}};
    Filled x{};
    if (const auto special = known.find(name); special != known.end())
        x.what = special->second;
    else if (const auto symbol = symbols_.find(name); symbol != symbols_.end())
        x.what = symbol->second.first, x.offset = symbol->second.second;
    else
        throw Fault("'" + name + "' is not known to this machine");
    auto [at, fresh] = filled_.try_emplace({name, bytes == 8 ? 8 : 4});
    if (fresh) {
        at->second = x.at = take_register(bytes);
        x.wide = bytes == 8;
        f_.filled.push_back(x);
    }
    return at->second;
}

const Translator::Place& Translator::place_of(const std::string& name) {
    const auto at = places_.find(name);
    if (at == places_.end()) throw Fault("'" + name + "' is no register");
    return at->second;
}

Value Translator::written(const std::string& name) {
    const Value v = place_of(name).at;
    uses_.writes.push_back(v.at);
    return v;
}

Value Translator::noted(Value v) {
    uses_.reads.push_back(v.at);
    return v;
}

Value Translator::value(const Operand& o, std::size_t bytes, char real) {
    if (o.kind == Operand::Kind::number) {
        if (real != 0 && o.real == 0) throw Fault("a whole number where a real one is wanted");
        return constant(bytes < 8 ? o.bits & 0xffffffffu : o.bits, bytes);
    }
    if (o.kind != Operand::Kind::name) throw Fault("an operand of another kind is wanted");
    if (const auto at = places_.find(o.name); at != places_.end()) {
        if ((at->second.bytes == 8) != (bytes == 8)) throw Fault("'" + o.name + "' has another size");
        return noted(at->second.at);
    }
    return noted(filled(o.name, bytes));
}

bool Translator::is_wide(const Operand& o) {
    if (o.kind == Operand::Kind::sink) return false;
    if (o.kind == Operand::Kind::list) return is_wide(o.members.at(0));
    return place_of(o.name).bytes == 8;
}

void Translator::address(Step& s, const Operand& o) {
    if (o.kind != Operand::Kind::address) throw Fault("an address is wanted");
    s.number = static_cast<std::int64_t>(o.bits);
    if (o.name.empty()) throw Fault("an address without a register");
    const auto at = places_.find(o.name);
    s.wide_address = at == places_.end() ? symbols_.contains(o.name) && symbols_[o.name].first != Filled::What::shared
                                         : at->second.bytes == 8;
    s.a = noted(at == places_.end() ? filled(o.name, s.wide_address ? 8 : 4) : at->second.at);
}

std::uint32_t Translator::keep(const std::vector<Value>& values) {
    const auto at = static_cast<std::uint32_t>(f_.values.size());
    f_.values.insert(f_.values.end(), values.begin(), values.end());
    return at;
}

std::uint32_t Translator::target(const std::string& label) const {
    const auto at = labels_.find(label);
    if (at == labels_.end()) throw Fault("no label '" + label + "'");
    return at->second;
}

void Translator::gives_later(const std::vector<Value>& sums) {
    for (const Value& v : sums) sums_.push_back(v.at);
}

Function Translator::translate() {
    constexpr std::array families = {translate_arithmetic, translate_conversion,   translate_memory,
                                     translate_control,    translate_asynchronous, translate_matrix};
    std::vector<Uses> uses;
    std::vector<std::size_t> waiting;
    for (const Instruction& i : kernel_.instructions) {
        Step s;
        s.line = i.line;
        bool known = false;
        uses_ = {};
        waits_for_sums_ = false;
        try {
            if (!i.guard.empty()) s.guard = noted(place_of(i.guard).at), s.guard_is_false = i.guard_is_false;
            for (const auto family : families)
                if ((known = family(*this, i, s))) break;
        } catch (const std::exception& e) {
            throw Fault("PTX, line " + std::to_string(i.line) + ", " + i.text() + ": " + e.what());
        }
        if (!known) throw Fault("PTX, line " + std::to_string(i.line) + ": this machine has no " + i.text());
        f_.steps.push_back(s);
        f_.names.push_back(i.text());
        uses_.branches = i.parts[0] == "bra";
        uses_.goes_on = !((uses_.branches || i.parts[0] == "ret") && i.guard.empty());
        if (!i.guard.empty()) uses_.reads.insert(uses_.reads.end(), uses_.writes.begin(), uses_.writes.end());
        if (waits_for_sums_) waiting.push_back(uses.size());
        uses.push_back(std::move(uses_));
    }
    std::sort(sums_.begin(), sums_.end());
    sums_.erase(std::unique(sums_.begin(), sums_.end()), sums_.end());
    for (const std::size_t at : waiting) uses[at].reads.insert(uses[at].reads.end(), sums_.begin(), sums_.end());
    share_registers(f_, uses);
    return std::move(f_);
}

struct Module::Parts {
    ModuleText text;
    std::map<std::string, const KernelText*, std::less<>> kernels;
    std::map<std::string, Function, std::less<>> functions;
};

Module::Module(std::string ptx) : parts_(std::make_unique<Parts>()) {
    parts_->text = split_module(ptx);
    for (const KernelText& k : parts_->text.kernels) parts_->kernels[k.name] = &k;
}
Module::~Module() = default;

const Function* Module::find(std::string_view name) {
    if (const auto at = parts_->functions.find(name); at != parts_->functions.end()) return &at->second;
    const auto text = parts_->kernels.find(name);
    if (text == parts_->kernels.end()) return nullptr;
    const Kernel kernel = parse_kernel(*text->second);
    return &parts_->functions.emplace(name, Translator(kernel, parts_->text.shared).translate()).first->second;
}

std::vector<std::size_t> parameter_sizes(const Function& f) { return f.parameter_sizes; }
std::size_t static_shared(const Function& f) { return f.shared_bytes; }
unsigned most_threads(const Function& f) { return f.most_threads; }

}  // namespace soft_gpu
