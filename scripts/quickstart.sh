#!/usr/bin/env bash
# quickstart.sh [FOLDER]   from nothing to a trained model that writes stories
#
# Installs what is missing, builds, then runs the whole path on the example corpus the program brings along: corpus,
# tokenizer, token files, training, a stop, the resume from its checkpoint, evaluation, text, and a picture of the loss
# curve. No GPU and no network beyond the package server. Some 5 minutes on two cores after install and build.
# Everything is left in FOLDER (default: quickstart-run).
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
case ${1:-} in -h | --help) usage; exit 0 ;; -*) misuse "unknown argument '$1' (see --help)" ;; esac

"$ROOT/scripts/setup.sh"
if has_gpu; then "$ROOT/scripts/build.sh" teratron; else "$ROOT/scripts/build.sh" --cpu teratron; fi
teratron=$ROOT/build/teratron

run=${1:-$ROOT/quickstart-run}
rm -rf "$run/checkpoints" "$run/metrics.jsonl" "$run"/*.log
mkdir -p "$run"
cd "$run"
SECONDS=0

step "1/7 A corpus: short stories, made by a generator in the program"
"$teratron" example-corpus --output corpus.jsonl
head -c 180 corpus.jsonl
echo " ..."

step "2/7 A tokenizer: byte-level BPE, learned from the corpus"
"$teratron" tokenizer train --input corpus.jsonl --vocab-size 2048 --output tokenizer --overwrite
tokenizer=(--tokenizer-type GPT2BPETokenizer --vocab-file tokenizer/vocab.json --merge-file tokenizer/merges.txt)

step "3/7 Token files: stories_text_document.bin and .idx"
"$teratron" preprocess --input corpus.jsonl --output-prefix stories "${tokenizer[@]}" --append-eod --log-interval 4000

# A Llama in small: 4 million parameters. The flags are Megatron's own.
model=(--num-layers 4 --hidden-size 256 --ffn-hidden-size 704 --num-attention-heads 8
    --group-query-attention --num-query-groups 4 --seq-length 256 --max-position-embeddings 256
    --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear
    --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0)
iterations=500 stop_at=250
training=(--micro-batch-size 8 --global-batch-size 8 --train-iters $iterations --seed 1234
    --lr 2e-3 --min-lr 2e-4 --lr-decay-style cosine --lr-warmup-iters 30
    --weight-decay 0.1 --adam-beta2 0.95 --clip-grad 1.0
    --data-path stories_text_document --split 97,2,1 "${tokenizer[@]}"
    --save checkpoints --load checkpoints --save-interval 100 --keep-last 2
    --eval-interval 100 --eval-iters 6 --log-interval 10 --metrics-file metrics.jsonl)

# What the whole log in train.log says, in short.
in_short() {
    awk '
    function field(name,   rest) { rest = substr($0, index($0, name) + length(name)); sub(/ \|.*/, "", rest); return rest }
    / iteration +[0-9]+\/ *[0-9]+ \|/ {
        split(field(" iteration"), at, "/")
        printf "   iteration %4d/%d   loss %.3f   learning rate %.2e   %4.0f ms\n", at[1], at[2], field("lm loss: "),
            field("learning rate: "), field("elapsed time per iteration (ms): ")
    }
    /validation loss at iteration|on validation set|on test set/ && /lm loss value/ { sub(/^[- ]*/, ""); print "   " $0 }
    /^teratron: |^rank [0-9]+ / { print }
    /number of parameters on|successfully (saved|loaded)|exiting program/ { sub(/^[ ]*/, ""); print "   " $0 }
    { fflush() }'
}

step "4/7 Training, to be stopped at iteration $stop_at of $iterations"
"$teratron" pretrain gpt "${model[@]}" "${training[@]}" --exit-interval $stop_at 2>&1 | tee train.log | in_short

step "5/7 Resumed from the checkpoint, as if nothing had happened; evaluated at the end"
"$teratron" pretrain gpt "${model[@]}" "${training[@]}" 2>&1 | tee -a train.log | in_short

step "6/7 Stories written by the model"
number=0
for prompt in "Once upon a time" "One day, a little girl named Anna" "There was once a"; do
    number=$((number + 1))
    "$teratron" generate --load checkpoints --prompt "$prompt" --temperature 0.6 --top-k 40 --max-new-tokens 120 \
        --stop-at-eod --seed $number | tee -a stories.log | fold -s -w 100 | sed 's/^/   /'
    echo
done

step "7/7 A picture of the loss"
"$teratron" board --metrics metrics.jsonl --svg loss.svg --title "Quickstart: example stories, 4 layers, 256 wide"

step "Done"
note "in ${run#"$PWD/"}:"
note "loss.svg           the loss curve: open it in a browser"
note "train.log          the whole training log"
note "checkpoints/       iter_* folders, each a Hugging Face model with all that an exact resume needs"
note "stories.log        what the model wrote"
note "Go on:  $teratron generate --load $run/checkpoints --prompt \"Once upon a time\""
