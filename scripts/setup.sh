#!/usr/bin/env bash
# setup.sh [--tests] [--slurm] [--parquet] [--oracle | --oracle-text]   install what is missing to build and run, from apt
#
#   --tests    also what scripts/test.sh uses (GoogleTest, clang-format, clang's fuzzer)
#   --slurm    also Slurm, whose daemons the tests of srun start for themselves; without it those skip by name
#   --parquet  also pyarrow in .venv, from PyPI, whose libraries read Parquet; without it Parquet input is refused
#   --oracle   also a Python environment in .venv with the reference programs (torch, transformers, ...) that the
#              oracle tests compare with; without PyPI it says so and those tests skip by name
#   --oracle-text  only those for tokenizers (tokenizers, tiktoken, sentencepiece, transformers), without torch
#
# For Debian 12, Ubuntu 22.04 and 24.04. As root or with sudo. What is already there, from wherever, is left alone; when
# nothing is missing no network is needed.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

with_tests=0 with_slurm=0 with_parquet=0 with_oracle=0
for argument in "$@"; do
    case $argument in
        --tests) with_tests=1 ;;
        --slurm) with_slurm=1 ;;
        --parquet) with_parquet=1 ;;
        --oracle) with_oracle=1 ;;
        --oracle-text) with_oracle=text ;;
        -h | --help) usage; exit 0 ;;
        *) misuse "unknown argument '$argument' (see --help)" ;;
    esac
done

# One requirement a line: apt package, then how to see that it is there already (a command or a header).
required="
g++                 command:g++
cmake               command:cmake
ninja-build         command:ninja
git                 command:git
ccache              command:ccache
nlohmann-json3-dev  header:nlohmann/json.hpp
libyaml-cpp-dev     header:yaml-cpp/yaml.h
zlib1g-dev          header:zlib.h
libzstd-dev         header:zstd.h
liblzma-dev         header:lzma.h
libbz2-dev          header:bzlib.h
"
for_tests="
libgtest-dev        header:gtest/gtest.h
clang-format-14     command:clang-format-14
"
# Better tests with them, complete without them. Names differ between releases; what apt does not know is passed over.
optional_for_tests="
libopenmpi-dev      command:mpicc
openmpi-bin         command:mpirun
clang-14            command:clang-14
libclang-rt-14-dev  file:/usr/lib/llvm-14/lib/clang/*/lib/linux/libclang_rt.fuzzer-x86_64.a
"

for_slurm="
slurmctld           command:slurmctld
slurmd              command:slurmd
slurm-client        command:srun
"

is_there() {
    local kind=${1%%:*} what=${1#*:} folder
    case $kind in
        command) command -v "$what" >/dev/null ;;
        file) compgen -G "$what" >/dev/null ;;
        header)
            for folder in /usr/include /usr/local/include "/usr/include/$(uname -m)-linux-gnu"; do
                [ -e "$folder/$what" ] && return 0
            done
            return 1 ;;
    esac
}

missing_of() {
    local package probe
    while read -r package probe; do
        [ -z "$package" ] || is_there "$probe" || echo "$package"
    done <<<"$1"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "needs root to install packages and there is no sudo; as root run: apt-get install -y ${missing[*]}"
    fi
}

apt_get() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 "$@"; }

step "Packages"
wanted=$required
[ $with_tests = 0 ] || wanted+=$for_tests
[ $with_slurm = 0 ] || wanted+=$for_slurm
mapfile -t missing < <(missing_of "$wanted")
optional=()
[ $with_tests = 0 ] || mapfile -t optional < <(missing_of "$optional_for_tests")

if [ ${#missing[@]} = 0 ] && [ ${#optional[@]} = 0 ]; then
    note "all there already"
elif ! command -v apt-get >/dev/null; then
    [ ${#missing[@]} = 0 ] || die "no apt-get here; install what these Debian packages hold: ${missing[*]}"
    note "no apt-get here; going on without ${optional[*]}"
else
    reachable=1
    note "apt-get update"
    apt_get update -q >/tmp/teratron-apt-update.$$ 2>&1 || reachable=0
    grep -qE '^(Err|W: Failed)' /tmp/teratron-apt-update.$$ && note "some package lists could not be fetched"
    rm -f /tmp/teratron-apt-update.$$
    available=()
    for package in ${optional[@]+"${optional[@]}"}; do
        apt-cache show "$package" >/dev/null 2>&1 && available+=("$package")
    done
    if [ ${#missing[@]} -gt 0 ]; then
        note "installing: ${missing[*]}"
        apt_get install -y --no-install-recommends "${missing[@]}" ||
            die "apt-get could not install: ${missing[*]} (is the package server reachable?)"
    fi
    if [ ${#available[@]} -gt 0 ]; then
        note "installing: ${available[*]}"
        apt_get install -y --no-install-recommends "${available[@]}" || note "going on without ${available[*]}"
    fi
    [ $reachable = 1 ] || note "apt's package lists are not reachable; used what was there"
    mapfile -t missing < <(missing_of "$wanted")
    [ ${#missing[@]} = 0 ] || die "still missing after the install: ${missing[*]}"
fi

make_venv() {
    [ ! -x "$ROOT/.venv/bin/pip" ] || return 0
    if ! command -v python3 >/dev/null || ! python3 -c 'import ensurepip' 2>/dev/null; then
        missing=(python3-venv)
        note "installing: python3-venv"
        apt_get install -y --no-install-recommends python3-venv || die "apt-get could not install python3-venv"
    fi
    python3 -m venv "$ROOT/.venv"
}

from_pypi() { "$ROOT/.venv/bin/pip" install --quiet --disable-pip-version-check --retries 2 --timeout 30 "$@"; }

# Where CUDA is built: the headers through which cuDNN's attention is used.
has_cudnn() {
    local folder pattern
    folder=$(dirname "$(dirname "$(readlink -f "$1")")")
    for pattern in "$folder/lib*" "$folder/targets/*/lib" "/usr/lib/*"; do
        compgen -G "$pattern/libcudnn.so*" >/dev/null && return 0
    done
    return 1
}
if nvcc=$(find_nvcc) && has_cudnn "$nvcc"; then
    step "cuDNN front end (.venv)"
    if compgen -G "$ROOT/.venv/lib/python3*/site-packages/include/cudnn_frontend.h" >/dev/null; then
        note "all there already"
    else
        make_venv
        if from_pypi --no-deps nvidia-cudnn-frontend; then
            note "installed nvidia-cudnn-frontend"
        else
            note "PyPI cannot be reached: attention on GPUs will use our own, slower kernels"
        fi
    fi
fi

if [ $with_parquet = 1 ]; then
    step "Apache Arrow for Parquet input (.venv)"
    if compgen -G "$ROOT/.venv/lib/python3*/site-packages/pyarrow/libparquet.so.*" >/dev/null; then
        note "all there already"
    else
        make_venv
        if from_pypi pyarrow; then
            note "installed pyarrow"
        else
            note "PyPI cannot be reached: Parquet input will be refused"
        fi
    fi
fi

# What the oracle tests of tokenizers compare with, and what those of models and checkpoints need besides.
text_oracles=(tokenizers tiktoken sentencepiece transformers numpy pyarrow)
model_oracles=(safetensors torch)

# install_oracles PACKAGE...: what is missing, or a note that PyPI cannot be reached
install_oracles() {
    local imports
    imports=$(IFS=,; echo "$*")
    if [ -x "$ROOT/.venv/bin/python" ] && "$ROOT/.venv/bin/python" -c "import $imports" 2>/dev/null; then
        note "all there already"
        return
    fi
    make_venv
    if from_pypi "$@"; then
        note "installed $*"
    else
        note "PyPI cannot be reached: the oracle tests will skip by name"
    fi
}

if [ $with_oracle != 0 ]; then
    step "Reference programs for the oracle tests (.venv)"
    install_oracles "${text_oracles[@]}"
    [ $with_oracle = text ] || install_oracles "${model_oracles[@]}"
fi
