// Moves and conversions between types.
#include <cmath>

#include "soft_gpu/elementwise.h"
#include "soft_gpu/half.h"
#include "soft_gpu/translate.h"

namespace soft_gpu {
namespace {

struct Same {
    template <class T>
    T operator()(T a) const {
        return a;
    }
};

/// mov.b64 {low, high}, a and its like: parts of s.bytes each.
Outcome take_apart(Warp& w, const Step& s, Mask mask) {
    for (std::size_t k = 0; k < s.count; ++k) {
        const Value part = w.more(s, k);
        if (!part) continue;
        const auto shift = static_cast<unsigned>(8 * s.bytes * k);
        const std::uint64_t field = s.bytes == 4 ? 0xffffffffu : 0xffffu;
        std::uint32_t* d = w.write<std::uint32_t>(part);
        if (s.wide) {
            const std::uint64_t* a = w.read<std::uint64_t>(s.a);
            for_lanes(mask, [=](int l) { d[l] = static_cast<std::uint32_t>(a[l] >> shift & field); });
        } else {
            const std::uint32_t* a = w.read<std::uint32_t>(s.a);
            for_lanes(mask, [=](int l) { d[l] = static_cast<std::uint32_t>(a[l] >> shift & field); });
        }
    }
    return Outcome::next;
}

Outcome put_together(Warp& w, const Step& s, Mask mask) {
    const std::uint64_t field = s.bytes == 4 ? 0xffffffffu : 0xffffu;
    for_lanes(mask, [&](int l) {
        std::uint64_t all = 0;
        for (std::size_t k = 0; k < s.count; ++k)
            all |= (w.lane<std::uint32_t>(w.more(s, k), l) & field) << (8 * s.bytes * k);
        if (s.wide)
            w.set_lane(s.d, l, all);
        else
            w.set_lane(s.d, l, static_cast<std::uint32_t>(all));
    });
    return Outcome::next;
}

bool translate_mov(Translator& t, const Instruction& i, Step& s) {
    const std::string& type = i.parts.back();
    const std::size_t bytes = bytes_of_type(type);
    const Operand &to = i.operands.at(0), &from = i.operands.at(1);
    if (to.kind == Operand::Kind::list || from.kind == Operand::Kind::list) {
        const Operand& list = to.kind == Operand::Kind::list ? to : from;
        std::vector<Value> parts;
        s.count = static_cast<std::uint8_t>(list.members.size());
        s.bytes = static_cast<std::uint8_t>(bytes / s.count);
        if (s.bytes != 2 && s.bytes != 4) return false;
        s.wide = bytes == 8;
        for (const Operand& m : list.members) parts.push_back(&list == &to ? t.destination(m) : t.value(m, s.bytes));
        s.more = t.keep(parts);
        if (&list == &to)
            s.run = take_apart, s.a = t.value(from, bytes);
        else
            s.run = put_together, s.d = t.destination(to);
        return true;
    }
    s.run = bytes == 8 ? unary<Same, std::uint64_t, std::uint64_t> : unary<Same, std::uint32_t, std::uint32_t>;
    s.d = t.destination(to);
    s.a = t.value(from, bytes);
    return static_cast<bool>(s.d);
}

// Whole numbers: the source's type says how it is widened, the result's where it is cut.
struct Whole {
    unsigned bits;
    bool is_signed;
    std::uint64_t operator()(std::uint64_t x) const {
        const unsigned gap = 64 - bits;
        return is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(x << gap) >> gap) : x << gap >> gap;
    }
};
template <class To, class From>
Outcome convert_whole(Warp& w, const Step& s, Mask mask) {
    const Whole from{static_cast<unsigned>(s.number & 0xff), (s.number & 0x100) != 0};
    const Whole to{static_cast<unsigned>(s.number >> 16 & 0xff), (s.number & 0x1000000) != 0};
    To* d = w.write<To>(s.d);
    const From* a = w.read<From>(s.a);
    for_lanes(mask, [=](int l) { d[l] = static_cast<To>(to(from(a[l]))); });
    return Outcome::next;
}
bool is_whole(const std::string& type) { return type[0] == 'u' || type[0] == 's'; }
std::int64_t whole(const std::string& type) {
    return static_cast<std::int64_t>(8 * bytes_of_type(type)) | (type[0] == 's' ? 0x100 : 0);
}

template <class D>
struct To {
    template <class A>
    D operator()(A a) const {
        return static_cast<D>(a);
    }
};
/// Towards zero; what is too large is the largest, no number is 0.
struct ToInt32 {
    std::int32_t operator()(float a) const {
        if (std::isnan(a)) return 0;
        if (a >= 2147483648.0f) return INT32_MAX;
        return a <= -2147483648.0f ? INT32_MIN : static_cast<std::int32_t>(a);
    }
};
struct Truncate {
    float operator()(float a) const { return std::trunc(a); }
};
struct ToBf16 {
    template <class A>
    std::uint16_t operator()(A a) const {
        return bf16_of(a);
    }
};
struct ToF16 {
    template <class A>
    std::uint16_t operator()(A a) const {
        return f16_of(a);
    }
};
struct FromBf16 {
    float operator()(std::uint16_t a) const { return from_bf16(a); }
};
struct FromF16 {
    float operator()(std::uint16_t a) const { return from_f16(a); }
};
/// The first operand goes to the upper half.
template <class Half>
struct TwoHalves {
    std::uint32_t operator()(float high, float low) const {
        return std::uint32_t{Half{}(high)} << 16 | std::uint32_t{Half{}(low)};
    }
};

Handler conversion(const std::string& how, const std::string& to, const std::string& from) {
    const std::string key = (how.empty() ? "" : how + " ") + to + " " + from;
    static const std::map<std::string, Handler> known = {
        {"f64 f32", unary<To<double>, double, float>},
        {"rn f32 f64", unary<To<float>, float, double>},
        {"rn f32 s32", unary<To<float>, float, std::int32_t>},
        {"rn f32 u32", unary<To<float>, float, std::uint32_t>},
        {"rn f32 s64", unary<To<float>, float, std::int64_t>},
        {"rn f64 s32", unary<To<double>, double, std::int32_t>},
        {"rn f64 u32", unary<To<double>, double, std::uint32_t>},
        {"rn f64 s64", unary<To<double>, double, std::int64_t>},
        {"rzi s32 f32", unary<ToInt32, std::int32_t, float>},
        {"rzi f32 f32", unary<Truncate, float, float>},
        {"f32 bf16", unary<FromBf16, float, std::uint16_t>},
        {"f32 f16", unary<FromF16, float, std::uint16_t>},
        {"rn bf16 f32", unary<ToBf16, std::uint16_t, float>},
        {"rn bf16 f64", unary<ToBf16, std::uint16_t, double>},
        {"rn f16 f32", unary<ToF16, std::uint16_t, float>},
        {"rn f16 f64", unary<ToF16, std::uint16_t, double>},
        {"rn bf16x2 f32", binary<TwoHalves<ToBf16>, std::uint32_t, float>},
        {"rn f16x2 f32", binary<TwoHalves<ToF16>, std::uint32_t, float>},
    };
    const auto at = known.find(key);
    return at == known.end() ? nullptr : at->second;
}

bool translate_cvt(Translator& t, const Instruction& i, Step& s) {
    const std::size_t n = i.parts.size();
    if (n < 3 || n > 4) return false;
    const std::string &to = i.parts[n - 2], &from = i.parts[n - 1];
    s.d = t.destination(i.operands.at(0));
    if (!s.d) return false;
    if (n == 3 && is_whole(to) && is_whole(from)) {
        const bool wide_from = t.is_wide(i.operands.at(1)), wide_to = t.is_wide(i.operands[0]);
        s.a = t.value(i.operands[1], wide_from ? 8 : 4);
        s.number = whole(from) | whole(to) << 16;
        s.run = wide_to ? (wide_from ? convert_whole<std::uint64_t, std::uint64_t>
                                     : convert_whole<std::uint64_t, std::uint32_t>)
                        : (wide_from ? convert_whole<std::uint32_t, std::uint64_t>
                                     : convert_whole<std::uint32_t, std::uint32_t>);
        return true;
    }
    s.run = conversion(n == 4 ? i.parts[1] : "", to, from);
    if (s.run == nullptr) return false;
    s.a = t.value(i.operands.at(1), bytes_of_type(from));
    if (i.operands.size() > 2) s.b = t.value(i.operands[2], bytes_of_type(from));
    return true;
}

// Addresses of one memory as addresses of any, and back.
template <std::uint64_t window>
struct IntoWindow {
    std::uint64_t operator()(std::uint64_t a) const { return a + window; }
};
template <std::uint64_t window>
struct OutOfWindow {
    std::uint64_t operator()(std::uint64_t a) const { return a - window; }
};

bool translate_cvta(Translator& t, const Instruction& i, Step& s) {
    if (i.parts.back() != "u64") return false;
    s.d = t.destination(i.operands.at(0));
    s.a = t.value(i.operands.at(1), 8);
    const bool back = i.parts[1] == "to";
    const std::string& space = i.parts[back ? 2 : 1];
    if (space == "global" || space == "param")
        s.run = unary<Same, std::uint64_t, std::uint64_t>;
    else if (space == "shared")
        s.run = back ? unary<OutOfWindow<shared_window>, std::uint64_t, std::uint64_t>
                     : unary<IntoWindow<shared_window>, std::uint64_t, std::uint64_t>;
    else if (space == "local")
        s.run = back ? unary<OutOfWindow<local_window>, std::uint64_t, std::uint64_t>
                     : unary<IntoWindow<local_window>, std::uint64_t, std::uint64_t>;
    return s.run != nullptr;
}

}  // namespace

bool translate_conversion(Translator& t, const Instruction& i, Step& s) {
    if (i.parts[0] == "mov") return translate_mov(t, i, s);
    if (i.parts[0] == "cvt") return translate_cvt(t, i, s);
    if (i.parts[0] == "cvta") return translate_cvta(t, i, s);
    return false;
}

}  // namespace soft_gpu
