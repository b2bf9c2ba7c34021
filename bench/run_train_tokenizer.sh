#!/usr/bin/env bash
# `teratron tokenizer train` beside the BpeTrainer of Hugging Face tokenizers: same corpus, same cores, same vocabulary
# size; the vocabularies must be equal. Writes bench/results/train_tokenizer_<machine>_<date>.md.
#
#   bench/run_train_tokenizer.sh CORPUS.jsonl [build folder]   PYTHON=venv/bin/python  VOCAB_SIZE=32000  MEGABYTES=0 (all)
#
# CORPUS comes from bench/make_text_corpus.sh. PYTHON needs tokenizers. MEGABYTES takes only so much of the corpus.
set -euo pipefail
corpus=$(realpath "${1:?run_train_tokenizer.sh: give the corpus}")
cd "$(dirname "$0")/.."
build=${2:-build}
python=${PYTHON:-python3}
[ -x "$build/teratron" ] || { echo "run_train_tokenizer.sh: $build/teratron is not built; run scripts/build.sh" >&2; exit 2; }
"$python" -c 'import tokenizers' || { echo "run_train_tokenizer.sh: set PYTHON to one that has tokenizers" >&2; exit 2; }
exec "$python" bench/peers/train_tokenizer_report.py "$corpus" "$build/teratron" "${VOCAB_SIZE:-32000}" "${MEGABYTES:-0}"
