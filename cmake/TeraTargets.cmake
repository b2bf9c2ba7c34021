# tera_library(name deps...): static library tera_<name> of every source in src/<name>.
# A dependency that names one of our own folders stands for its library.
function(tera_resolve_dependencies out)
    set(result)
    foreach(dep ${ARGN})
        if(TARGET tera_${dep})
            list(APPEND result tera_${dep})
        else()
            list(APPEND result ${dep})
        endif()
    endforeach()
    set(${out} ${result} PARENT_SCOPE)
endfunction()

function(tera_library name)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
    if(TERA_CUDA)
        file(GLOB cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cu
             ${CMAKE_SOURCE_DIR}/src/${name}/cuda/*.cpp)
        # What uses instructions of one GPU alone is built for that one, where its generation is asked for at all.
        set(sm90_sources ${cuda_sources})
        list(FILTER sm90_sources INCLUDE REGEX "_sm90\\.cu$")
        list(FILTER cuda_sources EXCLUDE REGEX "_sm90\\.cu$")
        list(APPEND sources ${cuda_sources})
        if(sm90_sources AND TERA_SM90)
            add_library(tera_${name}_sm90 OBJECT ${sm90_sources})
            target_link_libraries(tera_${name}_sm90 PRIVATE tera_options)
            set_target_properties(tera_${name}_sm90 PROPERTIES CUDA_ARCHITECTURES 90a)
            list(APPEND sources $<TARGET_OBJECTS:tera_${name}_sm90>)
        endif()
    else()
        list(FILTER sources EXCLUDE REGEX "_(cublaslt|cudnn)\\.cpp$")
    endif()
    tera_resolve_dependencies(deps ${ARGN})
    if(sources)
        add_library(tera_${name} STATIC ${sources})
        target_link_libraries(tera_${name} PUBLIC tera_options ${deps})
    else()
        add_library(tera_${name} INTERFACE)
        target_link_libraries(tera_${name} INTERFACE tera_options ${deps})
    endif()
endfunction()

# tera_executable(name folder): one program from every source in src/<folder>, linked to everything.
function(tera_executable name folder)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cpp)
    add_executable(${name} ${sources})
    target_link_libraries(${name} PRIVATE tera_train tera_launch)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()

# tera_test(folder deps...): program test_<folder> of every source in tests/<folder>.
# Suites whose name begins with Slow get the label "slow", those of tests/cuda "cuda", all others "fast".
function(tera_test folder)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*.cpp)
    if(NOT sources)
        return()
    endif()
    tera_resolve_dependencies(deps ${ARGN})
    set(target test_${folder})
    add_executable(${target} ${sources})
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    target_compile_definitions(${target} PRIVATE TERA_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                                 TERA_BINARY="${CMAKE_BINARY_DIR}/teratron")
    target_link_libraries(${target} PRIVATE ${deps} GTest::gtest GTest::gtest_main)
    if(TERA_SANITIZE)  # sanitizers make GoogleTest's macros slow to optimise: a third of the time without
        target_compile_options(${target} PRIVATE -O0)
    endif()
    set(label fast)
    set(seconds 300)
    if(TERA_SANITIZE)  # ten times as slow, and beside other work on a few cores slower still
        set(seconds 900)
    endif()
    if(folder MATCHES "^(cuda|nccl)$")  # all of them skip without a GPU
        set(label cuda)
    endif()
    gtest_discover_tests(${target} TEST_FILTER "-Slow*" DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS ${label} TIMEOUT ${seconds})
    gtest_discover_tests(${target} TEST_FILTER "Slow*" DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         TEST_LIST ${target}_slow PROPERTIES LABELS slow TIMEOUT 1500)
endfunction()
