#!/usr/bin/env bash
# Tokenising on one thread, cold, beside Hugging Face tokenizers and tiktoken: GPT-2's vocabulary and cl100k_base, same
# documents, ids compared one by one over the whole corpus. Writes bench/results/tokenize_<machine>_<date>.md.
#
#   bench/run_tokenize.sh CORPUS.jsonl [build folder]      PYTHON=venv/bin/python  ROUNDS=1  VOCABULARIES=../shared/data
#
# CORPUS comes from bench/make_text_corpus.sh. PYTHON needs tokenizers, tiktoken and numpy. VOCABULARIES holds
# gpt2/gpt2-vocab.json, gpt2/gpt2-merges.txt and tiktoken/cl100k_base.tiktoken.gz. The programs take turns, ours before
# and after each other one, so that noise from outside hits all of them; nice -n -10 helps on a busy machine.
set -euo pipefail
corpus=$(realpath "${1:?run_tokenize.sh: give the corpus}")
cd "$(dirname "$0")/.."
build=${2:-build}
python=${PYTHON:-python3}
vocabularies=${VOCABULARIES:-../shared/data}
ours=$build/bench/tokenize
peer=bench/peers/tokenize_peer.py

[ -x "$ours" ] || { echo "run_tokenize.sh: $ours is not built; run scripts/build.sh, then: ninja -C $build bench_tokenize" >&2; exit 2; }
"$python" -c 'import numpy, tiktoken, tokenizers' || { echo "run_tokenize.sh: set PYTHON to one that has numpy, tiktoken and tokenizers" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gpt2="--vocab $vocabularies/gpt2/gpt2-vocab.json --merges $vocabularies/gpt2/gpt2-merges.txt"
cl100k="--ranks $vocabularies/tiktoken/cl100k_base.tiktoken.gz"
for ((round = 1; round <= ${ROUNDS:-1}; ++round)); do
    for vocabulary in "$gpt2" "$cl100k"; do
        "$ours" --corpus "$corpus" $vocabulary --ids "$work/ids" | tee -a "$work/log" >&2
        for package in tiktoken tokenizers; do
            "$python" "$peer" "$package" "$corpus" $vocabulary --ids "$work/ids" | tee -a "$work/log" >&2
            "$ours" --corpus "$corpus" $vocabulary | tee -a "$work/log" >&2
        done
    done
done
exec "$python" bench/peers/tokenize_report.py "$work/log"
