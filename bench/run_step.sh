#!/usr/bin/env bash
# Training steps on one GPU, model by model, with `teratron bench step`; with PEERS=1 each beside PyTorch
# (torch.compile, cuDNN attention) on the same GPU in the same run.
# Writes bench/results/step_<gpu>_<date>.md, and for GPT 1.7B where the time of a step goes: step_gpt1.7b_<gpu>_<date>.md.
#
#   bench/run_step.sh [build folder]
#     ROWS="gpt124m gpt1.7b"    only these; the names are in rows() below (default: all)
#     PEERS=1                   run PyTorch beside; PYTHON must have torch (default python3)
#     PEER_ROWS="gpt1.7b"       run it beside these only
#     LLMC=program              llm.c's train_gpt2cu, built for this GPU: run beside the GPT-2 rows too
#     LLMQ=program              LLMQ's step, built for this GPU (bench/peers/llmq_step.py): run beside Qwen too
#     FLAGS="..."               more flags for every run of ours
#     NOTE="..."                a sentence added to the results
#     RESULTS=folder TAG=name   write there instead of bench/results; add _name to the files
#
# Peers run first, so that ours finds the GPU no cooler than they did; llm.c and LLMQ, which start quickly, run once more
# after it, and the mean of both counts.
# PyTorch compiles for half a minute to a minute and a half per model; ours take under 20 s each.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build}
python=${PYTHON:-python3}
peers=${PEERS:-0}
ours=$build/teratron
report=bench/peers/step_report.py
peer=bench/peers/torch_gpu_step.py

# name | steps | flags | flags of PyTorch | the peer that runs twice, and its flags
rows() {
    local dropped="--tokenizer-type GPT2BPETokenizer"  # by 0.1, Megatron's default
    local gpt="$dropped --attention-dropout 0 --hidden-dropout 0"
    local llama="--tokenizer-type NullTokenizer --swiglu --normalization RMSNorm --position-embedding-type rope"
    llama+=" --disable-bias-linear --group-query-attention --attention-dropout 0 --hidden-dropout 0"
    local llama3="$llama --vocab-size 128255 --untie-embeddings-and-output-weights --rotary-base 500000"
    local llama8b="$llama3 --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --num-query-groups 8"
    llama8b+=" --ffn-hidden-size 14336 --micro-batch-size 1 --global-batch-size 8 --main-grads-dtype bf16"
    local peer8b="--llama --layers 32 --hidden 4096 --heads 32 --kv-heads 8 --ffn 14336 --vocab 128256 --batch 1"
    peer8b+=" --micro-batches 8"
    local keep="--keep-mlp-activations"  # where it fits
    cat <<ROWS
gpt124m|6 20|$gpt $keep --num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 64 --global-batch-size 64|--layers 12 --hidden 768 --heads 12 --ffn 3072 --vocab 50304 --sequence 1024 --batch 64|llmc --depth 12 --batch 64 --gelu-fusion 2 --steps 25
gpt2-1.56b|6 10|$gpt $keep --num-layers 48 --hidden-size 1600 --num-attention-heads 25 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 16 --global-batch-size 16|--layers 48 --hidden 1600 --heads 25 --ffn 6400 --vocab 50304 --sequence 1024 --batch 16|llmc --depth 48 --batch 16 --gelu-fusion 1 --steps 16
gpt1.7b|6 8|$gpt $keep --make-vocab-size-divisible-by 1024 --num-layers 24 --hidden-size 2304 --num-attention-heads 24 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 16 --global-batch-size 16|--layers 24 --hidden 2304 --heads 24 --ffn 9216 --vocab 51200 --sequence 2048 --batch 16
llama3.6b|6 8|$llama3 $keep --num-layers 28 --hidden-size 3072 --num-attention-heads 24 --num-query-groups 8 --ffn-hidden-size 8192 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 6 --global-batch-size 6|--llama --layers 28 --hidden 3072 --heads 24 --kv-heads 8 --ffn 8192 --vocab 128256 --sequence 4096 --batch 6
qwen2.5-1.5b|5 5|$llama $keep --vocab-size 151935 --add-qkv-bias --rotary-base 1000000 --num-layers 28 --hidden-size 1536 --num-attention-heads 12 --num-query-groups 2 --ffn-hidden-size 8960 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 32 --global-batch-size 128|--llama --qkv-bias --tied --layers 28 --hidden 1536 --heads 12 --kv-heads 2 --ffn 8960 --vocab 151936 --sequence 1024 --batch 32 --micro-batches 4|llmq --batch 32 --micro-batches 4
llama3-8b-4k|1 3|$llama8b $keep --seq-length 4096 --max-position-embeddings 4096|$peer8b --sequence 4096
llama3-8b-8k|1 3|$llama8b --seq-length 8192 --max-position-embeddings 8192|$peer8b --sequence 8192
gpt124m-dropout|6 20|$dropped $keep --num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 64 --global-batch-size 64|--layers 12 --hidden 768 --heads 12 --ffn 3072 --vocab 50304 --sequence 1024 --batch 64 --dropout 0.1
gpt1.7b-dropout|6 8|$dropped $keep --make-vocab-size-divisible-by 1024 --num-layers 24 --hidden-size 2304 --num-attention-heads 24 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 16 --global-batch-size 16|--layers 24 --hidden 2304 --heads 24 --ffn 9216 --vocab 51200 --sequence 2048 --batch 16 --dropout 0.1
ROWS
}

[ -x "$ours" ] || { echo "run_step.sh: $ours is not built; run scripts/build.sh" >&2; exit 2; }
known=$(rows | cut -d'|' -f1 | tr '\n' ' ')
wanted=${ROWS:-$known}
for row in $wanted; do
    [[ " $known " == *" $row "* ]] || { echo "run_step.sh: no row $row; there are: $known" >&2; exit 2; }
done
for program in LLMC LLMQ; do
    [ -z "${!program:-}" ] || [ -x "${!program}" ] || { echo "run_step.sh: $program=${!program} is no program" >&2; exit 2; }
done
if [ "$peers" = 1 ]; then
    "$python" -c 'import torch' 2>/dev/null || { echo "run_step.sh: $python has no torch; set PYTHON to one that has" >&2; exit 2; }
fi

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=0

# run_twin ROW TIME "NAME FLAGS": the peer that runs before and after ours, if it is there.
run_twin() {
    local name=$1 time=$2 kind flags program
    read -r kind flags <<<"$3"
    program=${kind^^}
    [ -n "$kind" ] && [ -n "${!program:-}" ] || return 0
    # shellcheck disable=SC2086
    "$python" "bench/peers/${kind}_step.py" "${!program}" $flags >"$logs/$name.$time.json" 2>"$logs/$name.$time.err" ||
        tail -n 1 "$logs/$name.$time.err" >&2
    cut -c1-200 "$logs/$name.$time.json" >&2
}

while IFS='|' read -r name steps flags peer_flags twin; do
    [[ " $wanted " == *" $name "* ]] || continue
    echo "== $name" >&2
    read -r warmup timed <<<"$steps"
    # shellcheck disable=SC2086
    command=($ours bench step gpt $flags ${FLAGS:-} --device cuda --bf16 --weight-decay 0.1 --adam-beta2 0.95
             --warmup "$warmup" --steps "$timed" --kernels)
    echo "${command[*]}" >"$logs/$name.command"
    if [ "$peers" = 1 ] && [[ " ${PEER_ROWS:-$wanted} " == *" $name "* ]]; then
        # shellcheck disable=SC2086
        "$python" "$peer" $peer_flags >"$logs/$name.peer.json" 2>"$logs/$name.peer.err" ||
            tail -n 1 "$logs/$name.peer.err" >&2
        cat "$logs/$name.peer.json" >&2
    fi
    run_twin "$name" before "$twin"
    if "${command[@]}" --json "$logs/$name.json" >"$logs/$name.txt" 2>"$logs/$name.err"; then
        sed -n '/^speed/,/^$/p' "$logs/$name.txt" >&2
    else
        failed=1
        rm -f "$logs/$name.json"
        cat "$logs/$name.err" >&2
    fi
    run_twin "$name" after "$twin"
done < <(rows)
"$python" "$report" "$logs"
exit $failed
