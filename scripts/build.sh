#!/usr/bin/env bash
# build.sh [--cpu] [--arch NAME] [--preset NAME] [--tests] [--bench] [--jobs N] [TARGET...]   builds build/teratron
#
#   --cpu           without CUDA; otherwise CUDA is built when nvcc and CUDA sources are there
#   --arch NAME     processor to build for, as for g++ -march= (default: native, this machine's)
#   --preset NAME   release (default), asan, tsan, fuzz: see CMakePresets.json; asan goes to build-asan/, ...
#   --tests         also the tests          --bench   also the benchmark programs
#   --jobs N        compilers at once       TARGET    ninja targets instead of all
#
# TERA_CUDA_ARCH is the GPU generation to build for (default 90: H100, H200).
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cuda=auto preset=release arch="" tests=OFF bench=OFF jobs="" targets=()
while [ $# -gt 0 ]; do
    case $1 in
        --cpu) cuda=no ;;
        --arch) arch=${2:?--arch needs a name}; shift ;;
        --preset) preset=${2:?--preset needs a name}; shift ;;
        --tests) tests=ON ;;
        --bench) bench=ON ;;
        --jobs) jobs=${2:?--jobs needs a number}; shift ;;
        -h | --help) usage; exit 0 ;;
        -*) misuse "unknown argument '$1' (see --help)" ;;
        *) targets+=("$1") ;;
    esac
    shift
done
jobs=${jobs:-$(jobs_that_fit)}
build=$ROOT/build
[ "$preset" = release ] || build=$ROOT/build-$preset

options=(-DTERA_TESTS=$tests -DTERA_BENCH=$bench)
[ -z "$arch" ] || options+=("-DTERA_CPU_ARCH=$arch")
cuda_sources=$(find "$ROOT/src" -name '*.cu' -print -quit)
if [ $cuda = auto ] && [ -n "$cuda_sources" ] && [ "$preset" = release ] && nvcc=$(find_nvcc); then
    options+=(-DTERA_CUDA=ON "-DCMAKE_CUDA_COMPILER=$nvcc" "-DCMAKE_CUDA_ARCHITECTURES=${TERA_CUDA_ARCH:-90}")
    backend="CPU and CUDA"
else
    options+=(-DTERA_CUDA=OFF)
    backend="CPU"
fi

# So that ccache serves other clones of the same sources too.
export CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1

step "Building ($preset, $backend, $jobs at once)"
cd "$ROOT"
configure_log=$build/configure.log
mkdir -p "$build"
cmake --preset "$preset" "${options[@]}" >"$configure_log" 2>&1 || { cat "$configure_log" >&2; die "CMake failed"; }
cmake --build "$build" --parallel "$jobs" ${targets[@]+--target "${targets[@]}"}
[ ! -x "$build/teratron" ] || note "$("$build/teratron" --version | head -1)"
