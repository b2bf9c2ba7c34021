// Arithmetic, comparisons, bits.
#include "soft_gpu/arithmetic_functions.h"
#include "soft_gpu/elementwise.h"
#include "soft_gpu/translate.h"

namespace soft_gpu {
namespace {

/// f of a value of the type that the name says; false if it is no type of whole numbers.
template <class F>
bool with_integer(const std::string& type, F f) {
    if (type == "s16") return f(std::int16_t{}), true;
    if (type == "u16" || type == "b16") return f(std::uint16_t{}), true;
    if (type == "s32") return f(std::int32_t{}), true;
    if (type == "u32" || type == "b32") return f(std::uint32_t{}), true;
    if (type == "s64") return f(std::int64_t{}), true;
    if (type == "u64" || type == "b64") return f(std::uint64_t{}), true;
    return false;
}
template <class F>
bool with_real(const std::string& type, F f) {
    if (type == "f32") return f(float{}), true;
    if (type == "f64") return f(double{}), true;
    return false;
}
template <class F>
bool with_number(const std::string& type, F f) {
    return with_integer(type, f) || with_real(type, f);
}

template <class Op>
bool unary_of(const std::string& type, Step& s) {
    return with_number(type, [&](auto t) { s.run = unary<Op, decltype(t), decltype(t)>; });
}
template <class Op>
bool binary_of(const std::string& type, Step& s) {
    return with_number(type, [&](auto t) { s.run = binary<Op, decltype(t), decltype(t)>; });
}
template <class Op>
bool bits_of(const std::string& type, Step& s) {
    if (type == "pred") return s.run = binary<Op, Flag, Flag>, true;
    return with_integer(type, [&](auto t) { s.run = binary<Op, decltype(t), decltype(t)>; });
}

template <class C, bool unordered>
bool compare_of(const std::string& type, Step& s) {
    return with_number(type, [&](auto t) { s.run = binary<Compare<C, unordered>, Flag, decltype(t)>; });
}
bool comparison(const std::string& how, const std::string& type, Step& s) {
    if (how == "eq") return compare_of<Equal, false>(type, s);
    if (how == "ne") return compare_of<Unequal, false>(type, s);
    if (how == "lt") return compare_of<Less, false>(type, s);
    if (how == "le") return compare_of<LessEqual, false>(type, s);
    if (how == "gt") return compare_of<Greater, false>(type, s);
    if (how == "ge") return compare_of<GreaterEqual, false>(type, s);
    if (how == "equ") return compare_of<Equal, true>(type, s);
    if (how == "neu") return compare_of<Unequal, true>(type, s);
    if (how == "ltu") return compare_of<Less, true>(type, s);
    if (how == "leu") return compare_of<LessEqual, true>(type, s);
    if (how == "gtu") return compare_of<Greater, true>(type, s);
    if (how == "geu") return compare_of<GreaterEqual, true>(type, s);
    return false;
}

/// What stands between name and type is one of these, or nothing: others would change the result.
bool plain(const Instruction& i, std::initializer_list<std::string_view> allowed = {}) {
    for (std::size_t k = 1; k + 1 < i.parts.size(); ++k) {
        bool known = false;
        for (const std::string_view a : allowed) known |= i.parts[k] == a;
        if (!known) return false;
    }
    return true;
}

bool choose_mul(const Instruction& i, const std::string& type, Step& s) {
    if (with_real(type, [&](auto t) { s.run = binary<Mul, decltype(t), decltype(t)>; })) return plain(i, {"rn"});
    if (i.parts[1] == "lo") return binary_of<Mul>(type, s);
    if (i.parts[1] == "hi")
        return with_integer(type, [&](auto t) { s.run = binary<MulHigh, decltype(t), decltype(t)>; });
    if (i.parts[1] != "wide") return false;
    return with_integer(type, [&](auto t) {
        using T = decltype(t);
        if constexpr (sizeof(T) < 8) s.run = binary<MulWide, Wider<T>, T>;
    });
}

bool choose_mad(const Instruction& i, const std::string& type, Step& s) {
    if (i.parts[1] == "lo")
        return with_integer(type, [&](auto t) {
            using T = decltype(t);
            s.run = ternary<MadLow, T, T, T, T>;
        });
    if (i.parts[1] != "wide") return false;
    return with_integer(type, [&](auto t) {
        using T = decltype(t);
        if constexpr (sizeof(T) < 8) s.run = ternary<MadWide, Wider<T>, T, T, Wider<T>>;
    });
}

bool choose_reciprocal(const Instruction& i, const std::string& type, Step& s) {
    if (i.has("rn")) return with_real(type, [&](auto t) { s.run = unary<Rcp, decltype(t), decltype(t)>; });
    if (!i.has("approx") || !i.has("ftz")) return false;
    if (type == "f64")
        s.run = unary<RcpRough, double, double>;
    else
        s.run = unary<RcpApprox, float, float>;
    return true;
}

bool choose(const Instruction& i, const std::string& name, const std::string& type, Step& s) {
    if (name == "add") return plain(i, {"rn"}) && binary_of<Add>(type, s);
    if (name == "sub") return plain(i, {"rn"}) && binary_of<Sub>(type, s);
    if (name == "mul") return choose_mul(i, type, s);
    if (name == "mad") return choose_mad(i, type, s);
    if (name == "fma")
        return plain(i, {"rn"}) && with_real(type, [&](auto t) {
                   using T = decltype(t);
                   s.run = ternary<Fma, T, T, T, T>;
               });
    if (name == "div") return plain(i, {"rn"}) && binary_of<Div>(type, s);
    if (name == "rem") return with_integer(type, [&](auto t) { s.run = binary<Rem, decltype(t), decltype(t)>; });
    if (name == "min") return plain(i) && binary_of<Min>(type, s);
    if (name == "max") return plain(i) && binary_of<Max>(type, s);
    if (name == "abs") return plain(i) && unary_of<Abs>(type, s);
    if (name == "neg") return plain(i) && unary_of<Neg>(type, s);
    if (name == "copysign") return with_real(type, [&](auto t) { s.run = binary<CopySign, decltype(t), decltype(t)>; });
    if (name == "and") return bits_of<And>(type, s);
    if (name == "or") return bits_of<Or>(type, s);
    if (name == "xor") return bits_of<Xor>(type, s);
    if (name == "not" && type == "pred") return s.run = unary<NotFlag, Flag, Flag>, true;
    if (name == "not") return with_integer(type, [&](auto t) { s.run = unary<Not, decltype(t), decltype(t)>; });
    if (name == "shl")
        return with_integer(type, [&](auto t) { s.run = binary<Shl, decltype(t), decltype(t), std::uint32_t>; });
    if (name == "shr")
        return with_integer(type, [&](auto t) { s.run = binary<Shr, decltype(t), decltype(t), std::uint32_t>; });
    if (name == "selp")
        return with_number(type, [&](auto t) {
            using T = decltype(t);
            s.run = ternary<Select, T, T, T, Flag>;
        });
    if (name == "setp") return i.parts.size() == 3 && comparison(i.parts[1], type, s);
    if (name == "popc" && type == "b32") return s.run = unary<PopCount, std::uint32_t, std::uint32_t>, true;
    if (name == "brev" && type == "b32") return s.run = unary<Reverse, std::uint32_t, std::uint32_t>, true;
    if (name == "bfind" && type == "u32" && i.parts[1] == "shiftamt")
        return s.run = unary<FindShift, std::uint32_t, std::uint32_t>, true;
    if (name == "ex2" && type == "f32" && i.has("approx") && i.has("ftz"))
        return s.run = unary<Exp2Approx, float, float>, true;
    if (name == "prmt" && type == "b32" && i.parts.size() == 2)
        return s.run = ternary<Permute, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, true;
    if (name == "rcp") return choose_reciprocal(i, type, s);
    if (name == "sqrt" && i.has("rn"))
        return with_real(type, [&](auto t) { s.run = unary<Sqrt, decltype(t), decltype(t)>; });
    return false;
}

/// bfi.b32 d, a, b, from, count: b with so many bits from `from` on taken from a.
Outcome insert_bits(Warp& w, const Step& s, Mask mask) {
    const std::uint32_t *a = w.read<std::uint32_t>(s.a), *b = w.read<std::uint32_t>(s.b);
    const std::uint32_t *from = w.read<std::uint32_t>(s.c), *count = w.read<std::uint32_t>(w.more(s, 0));
    std::uint32_t* d = w.write<std::uint32_t>(s.d);
    for_lanes(mask, [=](int l) {
        const std::uint32_t p = from[l] & 255, n = count[l] & 255;
        const std::uint64_t field = p >= 32 ? 0 : (((std::uint64_t{1} << (n > 32 ? 32 : n)) - 1) << p) & 0xffffffffu;
        d[l] = static_cast<std::uint32_t>((b[l] & ~field) | ((std::uint64_t{a[l]} << (p & 63)) & field));
    });
    return Outcome::next;
}

}  // namespace

bool translate_arithmetic(Translator& t, const Instruction& i, Step& s) {
    const std::string &name = i.parts[0], &type = i.parts.back();
    const std::size_t bytes = bytes_of_type(type);
    if (name == "bfi" && type == "b32") {
        s.run = insert_bits;
        s.more = t.keep({t.value(i.operands.at(4), 4)});
    } else if (!choose(i, name, type, s) || s.run == nullptr) {
        return false;
    }
    const char real = type[0] == 'f' ? 'f' : 0;
    const bool shift = name == "shl" || name == "shr", widening = i.has("wide");
    s.d = t.destination(i.operands.at(0));
    if (!s.d) throw Fault("a result that goes nowhere");
    s.a = t.value(i.operands.at(1), bytes, real);
    if (i.operands.size() > 2) s.b = t.value(i.operands[2], shift ? 4 : bytes, shift ? 0 : real);
    if (i.operands.size() > 3)
        s.c = t.value(i.operands[3], name == "selp" ? 1 : widening ? 2 * bytes : bytes, name == "selp" ? 0 : real);
    return true;
}

}  // namespace soft_gpu
