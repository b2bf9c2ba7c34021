# Third-party libraries, all by the names they have in apt (scripts/setup.sh installs them).
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.7 REQUIRED)
find_package(yaml-cpp REQUIRED)
link_libraries(Threads::Threads)

# Compressed input (src/io/decoder.cpp).
find_package(ZLIB REQUIRED)
find_package(BZip2 REQUIRED)
find_package(LibLZMA REQUIRED)
find_path(ZSTD_INCLUDE zstd.h REQUIRED)
find_library(ZSTD_LIBRARY NAMES zstd REQUIRED)
add_library(TeraCompression INTERFACE)
target_include_directories(TeraCompression INTERFACE ${ZSTD_INCLUDE})
target_link_libraries(TeraCompression INTERFACE ZLIB::ZLIB BZip2::BZip2 LibLZMA::LibLZMA ${ZSTD_LIBRARY})
# CUDA: the runtime and cuBLASLt from the toolkit; cuDNN attention where its library and front end (headers) are found.
if(TERA_CUDA)
    if(NOT CMAKE_CUDA_ARCHITECTURES)
        set(CMAKE_CUDA_ARCHITECTURES 90)
    endif()
    set(tera_oldest 0)  # the oldest GPU that there will be code for
    foreach(arch ${CMAKE_CUDA_ARCHITECTURES})
        string(REGEX MATCH "^[0-9]+" arch "${arch}")
        if(arch AND (tera_oldest EQUAL 0 OR arch LESS tera_oldest))
            set(tera_oldest ${arch})
        endif()
    endforeach()
    set_property(SOURCE src/core/cuda/gpu.cpp PROPERTY COMPILE_DEFINITIONS TERA_CUDA_OLDEST=${tera_oldest})
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    target_compile_definitions(tera_options INTERFACE TERA_WITH_CUDA)
    if("90" IN_LIST CMAKE_CUDA_ARCHITECTURES)
        set(TERA_SM90 ON)  # kernels for Hopper alone, in src/*/*_sm90.cu
        target_compile_definitions(tera_options INTERFACE TERA_SM90)
    endif()
    target_compile_options(tera_options INTERFACE
        "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--expt-relaxed-constexpr;--extended-lambda;-Werror=all-warnings;-O3>")
    target_link_libraries(tera_options INTERFACE CUDA::cudart_static CUDA::cublasLt)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    # Kernel time lines: CUPTI's headers; the library itself is loaded only when it is asked for.
    find_path(CUPTI_INCLUDE cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include
              ${CUDAToolkit_TARGET_DIR}/extras/CUPTI/include ${CUDAToolkit_LIBRARY_DIR}/../extras/CUPTI/include)
    set_property(SOURCE src/core/cuda/kernel_trace.cpp src/comm/nccl_library.cpp PROPERTY COMPILE_DEFINITIONS
                 TERA_CUDA_LIBRARY_DIR="${CUDAToolkit_LIBRARY_DIR}")
    if(CUPTI_INCLUDE)
        set_property(SOURCE src/core/cuda/kernel_trace.cpp PROPERTY INCLUDE_DIRECTORIES ${CUPTI_INCLUDE})
    endif()
    # From PyPI's nvidia-cudnn-frontend; TERA_CUDNN_FRONTEND names another folder that holds cudnn_frontend.h.
    file(GLOB tera_cudnn_frontend ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/include)
    find_path(CUDNN_FRONTEND_INCLUDE cudnn_frontend.h HINTS ${TERA_CUDNN_FRONTEND} ${tera_cudnn_frontend})
    find_library(CUDNN_LIBRARY NAMES cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
    if(CUDNN_FRONTEND_INCLUDE AND CUDNN_LIBRARY)
        add_library(TeraCudnn INTERFACE)
        target_include_directories(TeraCudnn SYSTEM INTERFACE ${CUDNN_FRONTEND_INCLUDE} ${CUDAToolkit_INCLUDE_DIRS})
        target_compile_definitions(TeraCudnn INTERFACE TERA_WITH_CUDNN)
        target_link_libraries(TeraCudnn INTERFACE ${CUDNN_LIBRARY} CUDA::nvrtc)  # the front end refers to NVRTC
        target_link_libraries(tera_options INTERFACE TeraCudnn)
        message(STATUS "cuDNN attention: ${CUDNN_LIBRARY}")
    else()
        message(STATUS "cuDNN or its front end not found: attention uses our own kernels")
    endif()
endif()
