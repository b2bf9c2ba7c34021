#!/usr/bin/env bash
# test.sh [STAGE...]   sets up, then runs every test that needs no GPU
#
# Stages, all by default, in this order:
#   checks    who may include whom; clang-format
#   release   optimised build, all tests
#   soft      the tests of the GPU on one in software, where nvcc is (docs/soft-gpu.md)
#   oracle    tokenizers beside the real packages from PyPI, some thousand texts each (TERA_ORACLE_CASES for more); a
#             package that is not there, and cannot be fetched, is skipped by name
#   asan      AddressSanitizer and UBSan, the fast tests
#   tsan      ThreadSanitizer, the tests that use threads
#   fuzz      every parser of foreign bytes, TERA_FUZZ_SECONDS each (default 10); libFuzzer with clang, else our own
#             driver under AddressSanitizer
# and only when named:
#   soft_long the longest of those, some ten minutes
#   mutants   breaks one line at a time and checks that a test notices (tests/mutants/run.py)
#
# A stage that fails does not stop the others; the summary at the end says what failed and where the log is.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

all_stages=(checks release soft oracle asan tsan fuzz)
stages=()
for argument in "$@"; do
    case $argument in
        -h | --help) usage; exit 0 ;;
        *) [[ " ${all_stages[*]} soft_long mutants " == *" $argument "* ]] || misuse "no stage '$argument' (see --help)"
           stages+=("$argument") ;;
    esac
done
[ ${#stages[@]} -gt 0 ] || stages=("${all_stages[@]}")
fuzz_seconds=${TERA_FUZZ_SECONDS:-10}
logs=$ROOT/build/test-logs
cd "$ROOT"

# Programs whose tests run threads, and which of their tests are rebuilt with ThreadSanitizer: those where threads meet.
threaded_tests=(
    "test_core -Slow*"
    "test_comm -Slow*:*Mpi*"
    "test_ops -*Gradient*:Slow*"
    "test_token -Slow*"
    "test_data -Slow*"
    "test_model Decoder.*:*Recompute*"
    "test_train TrainerLaws.*:TrainerResume.IsNoStopBitForBit:TrainerControl.Signal*"
)

"$ROOT/scripts/setup.sh" --tests --parquet
mkdir -p "$logs"

# Newer kernels place memory where ThreadSanitizer of GCC 12 does not expect it, unless addresses are not randomised.
fixed_addresses() {
    if setarch "$(uname -m)" -R true 2>/dev/null; then setarch "$(uname -m)" -R "$@"; else "$@"; fi
}

run_ctest() {
    local build=$1
    shift
    ctest --test-dir "$build" --parallel "$(nproc)" --output-on-failure --no-tests=error \
        --output-junit "$logs/$stage.xml" "$@"
}

stage_checks() {
    scripts/check_includes.sh --self-test && scripts/check_includes.sh || return 1
    git ls-files -co --exclude-standard -- 'src/*.h' 'src/*.cpp' 'src/*.cu' 'tests/*.h' 'tests/*.cpp' 'bench/*.cpp' |
        xargs clang-format-14 --dry-run -Werror || { note "run clang-format-14 -i on these files"; return 1; }
    note "includes and format are as they should be"
}

stage_release() {
    scripts/build.sh --tests --bench && run_ctest build -LE 'cuda|multi|soft'
}

stage_soft() { on_soft_gpu soft; }
stage_soft_long() { on_soft_gpu soft_long; }
on_soft_gpu() {
    find_nvcc >/dev/null || { note "skipped: there is no nvcc, so there are no kernels"; return 0; }
    scripts/build.sh --tests --bench && run_ctest build -L "^$1\$"
}

# Files of known models make these tests sharper; without them they make their own.
stage_oracle() {
    local python=${TERA_ORACLE_PYTHON:-$ROOT/.venv/bin/python} data=$ROOT/../shared/data name wrong=0 status
    [ -x "$ROOT/build/teratron" ] || scripts/build.sh --tests --bench || return 1
    if [ -z "${TERA_ORACLE_PYTHON:-}" ]; then
        scripts/setup.sh --oracle-text || note "no Python environment could be made"
    fi
    if ! command -v "$python" >/dev/null; then
        note "skipped: there is no Python with the reference packages (scripts/setup.sh --oracle-text)"
        return 0
    fi
    for name in tokenizers hf sentencepiece tiktoken bert; do
        local arguments=(build/teratron --cases "${TERA_ORACLE_CASES:-$(oracle_cases $name)}") files=()
        case $name in
            tokenizers) files=(--vocab gpt2/gpt2-vocab.json --merges gpt2/gpt2-merges.txt) ;;
            sentencepiece) files=(--model sentencepiece/bpe-example.model) ;;
            tiktoken) files=(--cl100k tiktoken/cl100k_base.tiktoken.gz) ;;
            bert) files=(--uncased bert/bert-base-uncased-vocab.txt --cased bert/bert-base-cased-vocab.txt) ;;
        esac
        while [ ${#files[@]} -gt 0 ]; do
            [ ! -e "$data/${files[1]}" ] || arguments+=("${files[0]}" "$data/${files[1]}")
            files=("${files[@]:2}")
        done
        note "${name}_oracle.py ${arguments[*]}"
        status=0
        "$python" "tests/oracle/${name}_oracle.py" "${arguments[@]}" || status=$?
        [ $status = 0 ] || [ $status = 77 ] || wrong=1
    done
    return $wrong
}

# As many texts as some ten seconds allow.
oracle_cases() {
    case $1 in
        tokenizers | tiktoken) echo 5000 ;;
        hf | bert) echo 1000 ;;
        *) echo 300 ;;
    esac
}

stage_asan() {
    scripts/build.sh --preset asan --tests || return 1
    ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 run_ctest build-asan -L fast
}

stage_tsan() {
    local entry wrong=0
    scripts/build.sh --preset tsan --tests "${threaded_tests[@]%% *}" || return 1
    for entry in "${threaded_tests[@]}"; do
        note "$entry"
        TSAN_OPTIONS=halt_on_error=1 fixed_addresses "build-tsan/tests/${entry%% *}" --gtest_filter="${entry#* }" \
            --gtest_brief=1 || wrong=1
    done
    return $wrong
}

stage_mutants() {
    python3 tests/mutants/run.py --build "$ROOT/build-mutants"
}

stage_fuzz() {
    local folder name wrong=0 started=0
    if has_libfuzzer; then
        scripts/build.sh --preset fuzz --tests fuzzers || return 1
        folder=build-fuzz/fuzz
    else
        note "clang-14 with its fuzzer is not here: using our own driver, without coverage"
        scripts/build.sh --preset asan --tests fuzzers || return 1
        folder=build-asan/fuzz
    fi
    note "$fuzz_seconds s each, $(nproc) at a time"
    for name in $(cd "$folder" && ls fuzz_*); do
        run_fuzzer "$folder/$name" "$logs/$name" &
        started=$((started + 1))
        [ $((started % $(nproc))) != 0 ] || wait
    done
    wait
    for name in $(cd "$folder" && ls fuzz_*); do
        if [ "$(cat "$logs/$name.rc")" = 0 ]; then
            note "$(printf '%-18s %s' "$name" "$(tail -1 "$logs/$name.log")")"
        else
            note "$name FAILED:"
            grep -E 'ERROR|SUMMARY|runtime error|Test unit written|input is in' "$logs/$name.log" || true
            wrong=1
        fi
    done
    return $wrong
}

# run_fuzzer PROGRAM STEM: libFuzzer keeps what it finds in folder STEM; the exit status goes to STEM.rc.
run_fuzzer() {
    local program=$1 stem=$2 corpus=() status=0
    mkdir -p "$stem"
    [[ $program == build-asan/* ]] || corpus=("$stem")
    TERA_FUZZ_SEEDS=$stem "$program" -seed=1 -max_total_time="$fuzz_seconds" -max_len=4096 -timeout=20 \
        -artifact_prefix="$stem-" ${corpus[@]+"${corpus[@]}"} >"$stem.log" 2>&1 || status=$?
    echo $status >"$stem.rc"
}

has_libfuzzer() {
    command -v clang++-14 >/dev/null && mkdir -p build &&
        echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
        clang++-14 -x c++ -fsanitize=fuzzer,address - -o build/fuzzer-probe 2>/dev/null
}

summary=() failed=0
touch "$logs/began"
for stage in "${stages[@]}"; do
    step "Stage: $stage"
    began=$SECONDS
    if ! "stage_$stage" 2>&1 | tee "$logs/$stage.log"; then
        verdict=FAILED failed=1
    else
        verdict=passed
    fi
    summary+=("$(printf '%-8s %s in %d s' "$stage" "$verdict" $((SECONDS - began)))")
done

step "Summary"
for line in "${summary[@]}"; do note "$line"; done
if [ $failed = 1 ]; then
    find "$logs" -name '*.xml' -newer "$logs/began" -exec scripts/failed_tests.py {} +
    die "some tests failed; logs are in build/test-logs/"
fi
note "all passed"
