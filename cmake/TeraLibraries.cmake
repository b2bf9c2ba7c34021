# Third-party libraries, all by the names they have in apt (scripts/setup.sh installs them).
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.7 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(fmt REQUIRED)
link_libraries(Threads::Threads)

# BLAS: OpenBLAS through its cblas interface. We thread the calls ourselves (src/ops/gemm_cpu.cpp).
find_path(OPENBLAS_INCLUDE cblas.h PATH_SUFFIXES x86_64-linux-gnu openblas openblas-pthread REQUIRED)
find_library(OPENBLAS_LIBRARY NAMES openblas REQUIRED)
add_library(TeraBlas INTERFACE)
target_include_directories(TeraBlas INTERFACE ${OPENBLAS_INCLUDE})
target_link_libraries(TeraBlas INTERFACE ${OPENBLAS_LIBRARY})

# Compressed input (src/io/decoder.cpp).
find_package(ZLIB REQUIRED)
find_package(BZip2 REQUIRED)
find_package(LibLZMA REQUIRED)
find_path(ZSTD_INCLUDE zstd.h REQUIRED)
find_library(ZSTD_LIBRARY NAMES zstd REQUIRED)
add_library(TeraCompression INTERFACE)
target_include_directories(TeraCompression INTERFACE ${ZSTD_INCLUDE})
target_link_libraries(TeraCompression INTERFACE ZLIB::ZLIB BZip2::BZip2 LibLZMA::LibLZMA ${ZSTD_LIBRARY})
