#!/usr/bin/env bash
# check_includes.sh [--self-test] [SRC]   who may include whom (the table in docs/design.md), and where vendors' headers
#                                         may appear; prints each offence as file:line and fails if there is any
#
#   --self-test   shows on a small tree with known offences that each one is found
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

check() {
    cd "$1"
    find . -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z |
        xargs -0 awk '
    BEGIN {
        may["core"] = "core"
        may["ops"] = may["comm"] = may["io"] = "core"
        may["nn"] = "core ops comm"
        may["model"] = "core ops comm io nn"
        may["parallel"] = may["optim"] = "core ops comm nn/param.h"
        may["token"] = may["config"] = "core io"
        may["data"] = "core io token"
        may["train"] = "core ops comm io nn model parallel optim token data config"
        may["launch"] = "core comm config"
        may["cli"] = may["train"] " train launch"
        for (folder in may) {
            n = split(may[folder] " " folder, names, " ")
            for (i = 1; i <= n; ++i) allowed[folder, names[i]] = 1
        }
        generated["build_info_values.h"] = 1
    }
    function offence(text) { printf "src/%s:%d: %s\n", file, FNR, text; bad = 1 }
    FNR == 1 { file = substr(FILENAME, 3); split(file, parts, "/"); folder = parts[1] }
    FNR == 1 && !(folder in may) { offence("folder " folder " is not in the table of who may include whom") }
    !/^[ \t]*#[ \t]*include[ \t]*["<]/ { next }
    {
        split($0, pieces, /["<>]/)
        header = pieces[2]
        target = header
        sub(/\/.*/, "", target)
    }
    header ~ /^(cuda|cublas|cudnn|nccl|mpi|nvtx|cuda_[a-z]+)[A-Za-z0-9_]*\.h$/ || header ~ /^(cub|cooperative_groups|nvtx3)\// {
        if (file !~ /\.cuh?$|_cublaslt\.cpp$|_cudnn\.(h|cpp)$|^core\/cuda\/|^comm\/nccl_|^comm\/mpi[_\/]/)
            offence("vendor header <" header "> outside *.cu, *_cublaslt.cpp, *_cudnn.{h,cpp}, core/cuda/, comm/nccl_*, comm/mpi_*")
    }
    header ~ /^fmt\// && file ~ /\.(h|cu|cuh)$/ { offence("<" header "> in a file that nvcc may see") }
    /#[ \t]*include[ \t]*"/ {
        if (header in generated) next
        if (!(target in may)) offence("\"" header "\" is not written from src/")
        else if (!((folder, target) in allowed) && !((folder, header) in allowed))
            offence(folder " may not include \"" header "\" (it may include: " may[folder] ")")
        else if ((getline ignored < header) < 0) offence("\"" header "\" does not exist")
        close(header)
    }
    END { exit bad }'
}

self_test() {
    local found wrong=0
    tree=$(mktemp -d)
    trap 'rm -rf "$tree"' EXIT
    mkdir -p "$tree"/{core,ops,nn,optim,cli}
    touch "$tree"/core/a.h "$tree"/nn/param.h "$tree"/nn/mlp.h
    printf '#include "nn/mlp.h"\n' >"$tree/ops/upwards.h"
    printf '#include "nn/param.h"\n#include "nn/mlp.h"\n' >"$tree/optim/adam.h"
    printf '#include <cuda_runtime.h>\n' >"$tree/ops/gpu.cpp"
    printf '#include <cuda_runtime.h>\n#include "core/a.h"\n' >"$tree/ops/fine.cu"
    printf '#include "a.h"\n' >"$tree/core/relative.cpp"
    printf '#include "core/gone.h"\n' >"$tree/cli/gone.cpp"
    printf '#include <fmt/core.h>\n' >"$tree/core/format.h"
    found=$(check "$tree" || true)
    local expected="src/ops/upwards.h:1: src/optim/adam.h:2: src/ops/gpu.cpp:1: src/core/relative.cpp:1:
        src/cli/gone.cpp:1: src/core/format.h:1:"
    for place in $expected; do
        grep -qF "$place" <<<"$found" || { note "not found: $place"; wrong=1; }
    done
    [ "$(wc -l <<<"$found")" = 6 ] || { note "expected 6 offences, found:"; echo "$found"; wrong=1; }
    return $wrong
}

if [ "${1:-}" = --self-test ]; then
    self_test || die "the self-test failed"
    exit 0
fi
case ${1:-} in -h | --help) usage; exit 0 ;; esac
check "${1:-$ROOT/src}" || die "includes that the table in docs/design.md does not allow"
