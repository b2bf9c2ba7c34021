# What the binary says about itself (core/build_info.h): written at configure time, so scripts/build.sh, which always
# configures, never leaves a stale revision.
set(tera_revision "unknown")
find_package(Git QUIET)
if(GIT_FOUND)
    execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --tags
                    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE tera_described
                    RESULT_VARIABLE tera_describe_failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT tera_describe_failed)
        set(tera_revision ${tera_described})
    endif()
endif()

string(TOUPPER "${CMAKE_BUILD_TYPE}" tera_build_type_upper)
string(JOIN " " tera_flags_text ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${tera_build_type_upper}} ${tera_cxx_flags})
string(REGEX REPLACE " -W[^ ]*" "" tera_flags_text " ${tera_flags_text}")
string(STRIP "${tera_flags_text}" tera_flags_text)
if(TERA_CUDA)
    set(tera_with_cuda true)
else()
    set(tera_with_cuda false)
endif()
configure_file(${CMAKE_SOURCE_DIR}/cmake/build_info_values.h.in ${CMAKE_BINARY_DIR}/generated/build_info_values.h @ONLY)
