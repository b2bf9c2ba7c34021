#!/usr/bin/env bash
# The loss curve of a small GPT on the example corpus: bf16 on the GPU beside f32 on the CPU, every one of 300 steps, and
# the bf16 run twice in deterministic mode: losses, norms, weights and moments bit for bit. Then the start of a run in
# fp16 with the loss scale it begins with by default. Writes bench/results/precision_<gpu>_<date>.md.
#
#   bench/run_gpu_precision.sh [build folder]
#     RESULTS=FOLDER   where the results go (default bench/results)
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x "${1:-build}/teratron" ] || { echo "run_gpu_precision.sh: ${1:-build}/teratron is not built; run scripts/build.sh" >&2; exit 2; }
command -v nvidia-smi >/dev/null || { echo "run_gpu_precision.sh: nvidia-smi finds no GPU" >&2; exit 2; }
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
    --data-path stories_text_document --split 98,2,0 --eval-iters 0 --log-interval 1 "${tokenizer[@]}")
run() { # name, flags
    local name=$1
    shift
    "$teratron" pretrain gpt "${flags[@]}" --metrics-file "$name.jsonl" "$@" >"$name.log" 2>&1 ||
        { tail -3 "$name.log" >&2; exit 1; }
}
run cpu --device cpu
run single --device cuda
run gpu --device cuda --bf16 --deterministic-mode --save gpu --save-interval 300
run again --device cuda --bf16 --deterministic-mode --save again --save-interval 300
run free --device cuda --bf16
run half --device cuda --fp16 --exit-interval 100

losses() { sed -n 's/.*"iteration":\([0-9]*\),.*"lm_loss":\([0-9.e+-]*\),.*"grad_norm":\([0-9.e+-]*\),.*/\1 \2 \3/p' "$1.jsonl"; }
for name in cpu single gpu again free; do
    losses $name >$name.txt
    [ "$(wc -l <$name.txt)" = 300 ] || { echo "run_gpu_precision.sh: $name logged $(wc -l <$name.txt) of 300 steps" >&2; exit 1; }
done
worst() { paste -d' ' cpu.txt "$1.txt" | awk '{d = ($5 - $2) / $2; if (d < 0) d = -d; if (d > worst) {worst = d; at = $1}}
    END {printf "%.4f %%, at step %d", 100 * worst, at}'; }
same_bits() {
    cmp -s gpu.txt again.txt || return 1
    local file
    (cd gpu && find . -name '*.safetensors') | while read -r file; do cmp -s "gpu/$file" "again/$file" || exit 1; done
}
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)
file=$results/precision_$(echo "$gpu" | tr 'A-Z ' 'a-z_')_$(date +%F).md
{
    echo "# Loss curves in bf16 and f32, $(date +%F)"
    echo
    echo "$gpu. 4 layers of 256, 300 steps of 16 × 256 tokens of the example corpus; every tenth step."
    echo
    echo "| step | CPU, f32 | GPU, f32 | GPU, bf16 | bf16 against CPU |"
    echo "|---|---|---|---|---|"
    paste -d' ' cpu.txt single.txt gpu.txt | awk '$1 % 10 == 0 {d = ($8 - $2) / $2; if (d < 0) d = -d
        printf "| %d | %.6f | %.6f | %.6f | %.3f %% |\n", $1, $2, $5, $8, 100 * d}'
    echo
    echo "Largest difference to the CPU in all 300 steps: bf16 $(worst gpu); bf16, not deterministic $(worst free); f32 $(worst single)."
    if same_bits; then
        echo "Twice in deterministic mode: every loss and norm, and all weights, main weights and moments at the end, bit for bit."
    else
        echo "Twice in deterministic mode: DIFFERENT."
    fi
    echo
    echo "In fp16 (--fp16, --initial-loss-scale 4294967296 by default), every step up to the fifth that trains, and the hundredth:"
    echo
    echo '```'
    grep -E 'iteration +[0-9]+/' half.log | awk 'trained < 5 {print} /lm loss/ {++trained}' | sed 's/ *$//'
    grep -E 'iteration +100/' half.log | sed 's/ *$//'
    echo '```'
} | tee "$file"
