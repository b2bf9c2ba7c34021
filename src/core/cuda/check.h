// Every call into the CUDA libraries is checked; the error carries the library's own text.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include "core/error.h"

namespace tera {

[[noreturn]] void cuda_failed(const char* file, int line, const char* call, const char* text);

}  // namespace tera

#define TERA_CUDA(call)                                                                                          \
    do {                                                                                                         \
        cudaError_t status_ = (call);                                                                            \
        if (status_ != cudaSuccess) ::tera::cuda_failed(__FILE__, __LINE__, #call, cudaGetErrorString(status_)); \
    } while (0)

#define TERA_CUBLAS(call)                                                                     \
    do {                                                                                      \
        cublasStatus_t status_ = (call);                                                      \
        if (status_ != CUBLAS_STATUS_SUCCESS)                                                 \
            ::tera::cuda_failed(__FILE__, __LINE__, #call, cublasLtGetStatusString(status_)); \
    } while (0)

/// After a kernel launch.
#define TERA_LAUNCHED() TERA_CUDA(cudaGetLastError())
