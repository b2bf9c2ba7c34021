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
#define TERA_ON_BACKEND(exec, call)    \
    if ((exec).device == Device::cuda) \
        cuda::call;                    \
    else                               \
        cpu::call
#else
#define TERA_ON_BACKEND(exec, call)                                             \
    TERA_CHECK((exec).device == Device::cpu, "this build has no CUDA backend"); \
    cpu::call
#endif

/// Runs the op; a dry run passes over it.
#define TERA_DISPATCH(exec, call)        \
    do {                                 \
        if (!(exec).counts()) {          \
            TERA_ON_BACKEND(exec, call); \
        }                                \
    } while (0)

/// For ops whose backends take scratch memory: a dry run enters them too, and they return once they have taken it
/// (exec.counts()).
#define TERA_DISPATCH_WITH_SCRATCH(exec, call) \
    do {                                       \
        TERA_ON_BACKEND(exec, call);           \
    } while (0)
