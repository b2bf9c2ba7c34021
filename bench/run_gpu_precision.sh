#!/usr/bin/env bash
# The loss curve of a small GPT on the example corpus: bf16 on the GPU beside f32 on the CPU, 300 steps, and the bf16 run
# twice in deterministic mode. Writes bench/results/precision_<gpu>_<date>.md.
#
#   bench/run_gpu_precision.sh [build folder]
#     RESULTS=FOLDER   where the results go (default bench/results)
set -euo pipefail
cd "$(dirname "$0")/.."
teratron=$(realpath "${1:-build}/teratron")
results=$(realpath "${RESULTS:-bench/results}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$teratron" example-corpus --output corpus.jsonl >/dev/null
"$teratron" tokenizer train --input corpus.jsonl --vocab-size 2048 --output tokenizer >/dev/null
tokenizer=(--tokenizer-type GPT2BPETokenizer --vocab-file tokenizer/vocab.json --merge-file tokenizer/merges.txt)
"$teratron" preprocess --input corpus.jsonl --output-prefix stories "${tokenizer[@]}" --append-eod >/dev/null
flags=(--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 256 --max-position-embeddings 256
    --attention-dropout 0 --hidden-dropout 0 --micro-batch-size 8 --global-batch-size 16 --train-iters 300
    --lr 3e-4 --min-lr 3e-5 --lr-decay-style cosine --lr-warmup-iters 50 --weight-decay 0.1 --clip-grad 1.0
    --data-path stories_text_document --split 98,2,0 --eval-iters 0 --log-interval 10 "${tokenizer[@]}")
run() { # name, flags
    local name=$1
    shift
    "$teratron" pretrain gpt "${flags[@]}" --metrics-file "$name.jsonl" "$@" >"$name.log" 2>&1 ||
        { tail -3 "$name.log" >&2; exit 1; }
}
run cpu --device cpu
run single --device cuda
run gpu --device cuda --bf16 --deterministic-mode
run again --device cuda --bf16 --deterministic-mode
run free --device cuda --bf16

losses() { sed -n 's/.*"iteration":\([0-9]*\).*"lm_loss":\([0-9.e+-]*\).*/\1 \2/p;s/.*"lm_loss":\([0-9.e+-]*\).*"iteration":\([0-9]*\).*/\2 \1/p' "$1.jsonl" | sort -n -u; }
for name in cpu single gpu again free; do losses $name >$name.txt; done
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)
file=$results/precision_$(echo "$gpu" | tr 'A-Z ' 'a-z_')_$(date +%F).md
{
    echo "# Loss curves in bf16 and f32, $(date +%F)"
    echo
    echo "$gpu. 4 layers of 256, 300 steps of 16 × 256 tokens of the example corpus; mean loss of ten steps at a time."
    echo
    echo "| iteration | CPU, f32 | GPU, f32 | GPU, bf16 | bf16 against CPU |"
    echo "|---|---|---|---|---|"
    paste -d' ' cpu.txt single.txt gpu.txt | awk '{d = ($6 - $2) / $2; if (d < 0) d = -d; if (d > worst) worst = d
        printf "| %d | %.6f | %.6f | %.6f | %.3f %% |\n", $1, $2, $4, $6, 100 * d}
        END {printf "\nLargest difference of bf16: %.3f %%.\n", 100 * worst}'
    paste -d' ' cpu.txt single.txt | awk '{d = ($4 - $2) / $2; if (d < 0) d = -d; if (d > worst) worst = d}
        END {printf "Largest difference of f32 on the GPU: %.4f %%.\n", 100 * worst}'
    if cmp -s gpu.txt again.txt; then echo "Twice in deterministic mode: the same digits at every step."; else echo "Twice in deterministic mode: DIFFERENT."; fi
} | tee "$file"
