// Handlers of steps that do the same to each lane.
#pragma once

#include "soft_gpu/machine.h"

namespace soft_gpu {

/// f for each lane of the mask; all 32 in a loop that the compiler can make one instruction of.
template <class F>
inline void for_lanes(Mask mask, F f) {
    if (mask == all_lanes) {
#pragma GCC ivdep
        for (int l = 0; l < lanes; ++l) f(l);
    } else {
        for (Mask left = mask; left != 0; left &= left - 1) f(std::countr_zero(left));
    }
}

template <class F, class D, class A>
Outcome unary(Warp& w, const Step& s, Mask mask) {
    Cell<D>* d = w.write<D>(s.d);
    const Cell<A>* a = w.read<A>(s.a);
    for_lanes(mask, [=](int l) { d[l] = to_cell<D>(F{}(from_cell<A>(a[l]))); });
    return Outcome::next;
}
template <class F, class D, class A, class B = A>
Outcome binary(Warp& w, const Step& s, Mask mask) {
    Cell<D>* d = w.write<D>(s.d);
    const Cell<A>* a = w.read<A>(s.a);
    const Cell<B>* b = w.read<B>(s.b);
    for_lanes(mask, [=](int l) { d[l] = to_cell<D>(F{}(from_cell<A>(a[l]), from_cell<B>(b[l]))); });
    return Outcome::next;
}
template <class F, class D, class A, class B, class C>
Outcome ternary(Warp& w, const Step& s, Mask mask) {
    Cell<D>* d = w.write<D>(s.d);
    const Cell<A>* a = w.read<A>(s.a);
    const Cell<B>* b = w.read<B>(s.b);
    const Cell<C>* c = w.read<C>(s.c);
    for_lanes(mask, [=](int l) { d[l] = to_cell<D>(F{}(from_cell<A>(a[l]), from_cell<B>(b[l]), from_cell<C>(c[l]))); });
    return Outcome::next;
}

}  // namespace soft_gpu
