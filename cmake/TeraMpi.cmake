# MPI for ranks on CPUs: teratron_mpi.so, a module beside the binary (src/comm/mpi_world.h). Without MPI here it is left
# out, and ranks talk over sockets.
set(MPI_CXX_SKIP_MPICXX ON)  # its C interface is all we use
find_package(MPI QUIET COMPONENTS CXX)
if(MPI_CXX_FOUND)
    message(STATUS "MPI: version ${MPI_CXX_VERSION} of the standard")
    add_library(teratron_mpi MODULE ${CMAKE_SOURCE_DIR}/src/comm/mpi/mpi_module.cpp ${CMAKE_SOURCE_DIR}/src/core/error.cpp)
    set_target_properties(teratron_mpi PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
    target_link_libraries(teratron_mpi PRIVATE tera_options MPI::MPI_CXX)
else()
    message(STATUS "MPI: left out, it is not here (libopenmpi-dev)")
endif()
