#!/usr/bin/env bash
# test_gpu.sh [--build FOLDER] [STAGE...]   runs the tests that need a GPU, with what scripts/build.sh --tests has built
#
# Stages, all by default, in this order (minutes on one H200):
#   ops          every op against the CPU, in every number format (1)
#   train        training on the GPU, golden models, what plan says against what is taken (1)
#   nccl         NCCL calls that do not fit together are found and named (1)
#   layouts      every layout against one rank: losses, bytes sent, memory (10); ranks share the GPUs there are
#   failures     ranks that are killed, stopped and broken: named, all gone (2); TERA_FAILURE_ROUNDS, default 3
#   sanitizers   compute-sanitizer on all ops: memcheck, racecheck, initcheck (3)
#
#   --build FOLDER   where the programs are (default: build)
#
# A stage that fails does not stop the others; the summary at the end says what failed and where the log is.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

all_stages=(ops train nccl layouts failures sanitizers)
build=$ROOT/build
stages=()
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --build) [ $# -ge 2 ] || misuse "--build needs a folder"; build=$(cd "$2" 2>/dev/null && pwd) || misuse "no folder $2"; shift ;;
        *) [[ " ${all_stages[*]} " == *" $1 "* ]] || misuse "no stage '$1' (see --help)"; stages+=("$1") ;;
    esac
    shift
done
[ ${#stages[@]} -gt 0 ] || stages=("${all_stages[@]}")
has_gpu || die "nvidia-smi finds no GPU; scripts/test.sh runs the tests that need none"
for program in teratron tests/test_cuda tests/test_nccl tests/test_train; do
    [ -x "$build/$program" ] || die "$build/$program is not there; run scripts/build.sh --tests"
done
logs=$build/test-logs-gpu
mkdir -p "$logs"
cd "$ROOT"

# sharded COUNT LOG COMMAND...: a test program as so many processes, each with its share of the tests. What takes long on
# the host (cuDNN building its kernels, the CPU's side of a comparison) goes on side by side.
sharded() {
    local count=$1 log=$2 failed=0 shard
    shift 2
    local running=()
    for ((shard = 0; shard < count; ++shard)); do
        GTEST_TOTAL_SHARDS=$count GTEST_SHARD_INDEX=$shard "$@" >"$log.$shard" 2>&1 &
        running+=($!)
    done
    for shard in "${!running[@]}"; do
        wait "${running[$shard]}" || { failed=1; grep -hE '^\[  FAILED|Failure$|ERROR SUMMARY|RACECHECK SUMMARY' "$log.$shard" | head -20; }
    done
    grep -hoE '^\[  (PASSED|SKIPPED) .*[0-9]+ tests?' "$log".* | awk '{n[$2] += $(NF - 1)} END {for (k in n) print "   " tolower(k), n[k]}'
    return $failed
}

stage_ops() { sharded 6 "$logs/ops" "$build/tests/test_cuda"; }
stage_train() { "$build/tests/test_train" --gtest_filter='TrainerOnGpu*:*Gpu*:*Golden*cuda*:PlanOf*'; }
stage_nccl() { "$build/tests/test_nccl"; }
stage_layouts() {
    local how=(--at-once 3)
    if command -v nvidia-cuda-mps-control >/dev/null; then how+=(--mps); fi
    python3 tests/nccl/layouts.py "$build/teratron" "${how[@]}"
}
stage_failures() {
    python3 tests/nccl/failures.py "$build/teratron" --rounds "${TERA_FAILURE_ROUNDS:-3}" --at-once 3
}

# racecheck ends with an error of its own in cuBLASLt's kernels; initcheck does not see what is stored by the GPU's
# copy engine, and calls every read of it uninitialised; documents of 20,000 tokens and many items of attention take
# racecheck many minutes, and are there in shorter ones.
stage_sanitizers() {
    command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not there; it comes with the CUDA toolkit"; return 1; }
    local products='*linear*:*products*:*search*:*Decoder*:*decoder*:*GemmTiles*:*Products.*ward/*'
    local attention='*CudaAttention*:*LongAttention*:*DeterministicAttention*:*attention*/bf16:*attention*/f16'
    local many='*LongAttention*/long_documents:*with_many_items*:*many_documents*'
    local tool filter shards failed=0 running=()
    for tool in memcheck racecheck initcheck; do  # side by side: they are slow on the host
        shards=4
        case $tool in
            memcheck) filter='*' ;;
            racecheck) filter="-$products:$many"; shards=8 ;;
            initcheck) filter="-$products:$attention:*GatedProducts*:*PlainProducts*" ;;
        esac
        sharded $shards "$logs/$tool" compute-sanitizer --tool $tool --kernel-regex kns=tera --error-exitcode 1 \
            "$build/tests/test_cuda" "--gtest_filter=$filter" >"$logs/$tool.summary" 2>&1 &
        running+=("$tool:$!")
    done
    for tool in "${running[@]}"; do
        wait "${tool#*:}" || failed=1
        echo "${tool%:*}"
        cat "$logs/${tool%:*}.summary"
    done
    return $failed
}

summary=()
failed=0
for stage in "${stages[@]}"; do
    step "$stage"
    begin=$SECONDS
    if "stage_$stage" 2>&1 | tee "$logs/$stage.log" | grep -vE '^\[ RUN|^\[       OK|^\[-----|^$'; [ "${PIPESTATUS[0]}" = 0 ]; then
        result=passed
    else
        result="FAILED, see $logs/$stage.log"
        failed=1
    fi
    summary+=("$(printf '%-12s %4d s  %s' "$stage" $((SECONDS - begin)) "$result")")
done
step "summary"
for line in "${summary[@]}"; do note "$line"; done
exit $failed
