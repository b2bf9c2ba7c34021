#!/usr/bin/env bash
# A GPT-2 124M training step on the CPU beside PyTorch eager: same threads, same machine, taking turns in one run.
# Writes bench/results/cpu_step_<machine>_<date>.md.
#
#   bench/run_cpu_step.sh [build folder]        PYTHON=venv/bin/python  THREADS=2  ROUNDS=3  STEPS=6
#
# PYTHON needs torch. One round runs every program once for each shape; noise from outside hits all of them alike. On a
# machine with other work, real-time priority for the whole run (chrt -f 1 bench/run_cpu_step.sh) gives every program the
# cores, and takes them from everything else meanwhile. NOTE="..." is added to the results.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build}
python=${PYTHON:-python3}
threads=${THREADS:-$(nproc)}
rounds=${ROUNDS:-3}
steps=${STEPS:-6}
ours=$build/bench/cpu_step
peer=bench/peers/torch_cpu_step.py

[ -x "$ours" ] || { echo "run_cpu_step.sh: $ours is not built; run scripts/build.sh, then: ninja -C $build bench_cpu_step" >&2; exit 2; }
"$python" -c 'import torch' 2>/dev/null || { echo "run_cpu_step.sh: $python has no torch; set PYTHON to one that has" >&2; exit 2; }

log=$(mktemp)
trap 'rm -f "$log"' EXIT
for ((round = 1; round <= rounds; ++round)); do
    for shape in "4 64" "2 512"; do
        set -- $shape
        args=(--batch "$1" --sequence "$2" --threads "$threads" --steps "$steps")
        echo "round $round of $rounds: batch $1, sequence $2" >&2
        "$ours" "${args[@]}" | tee -a "$log" >&2
        "$python" "$peer" "${args[@]}" --optimizer default | tee -a "$log" >&2
        "$python" "$peer" "${args[@]}" --optimizer fused | tee -a "$log" >&2
    done
done
exec "$python" bench/peers/cpu_step_report.py "$log"
