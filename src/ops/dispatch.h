// The one place where an op chooses its backend.
#pragma once

#include "core/exec.h"

/// Declares a backend function in both namespaces.
#define TERA_BACKENDS(...) \
    namespace cpu {        \
    __VA_ARGS__;           \
    }                      \
    namespace cuda {       \
    __VA_ARGS__;           \
    }

#ifdef TERA_WITH_CUDA
#define TERA_DISPATCH(exec, call)          \
    do {                                   \
        if ((exec).device == Device::cuda) \
            cuda::call;                    \
        else                               \
            cpu::call;                     \
    } while (0)
#else
#define TERA_DISPATCH(exec, call)                                                   \
    do {                                                                            \
        TERA_CHECK((exec).device == Device::cpu, "this build has no CUDA backend"); \
        cpu::call;                                                                  \
    } while (0)
#endif
