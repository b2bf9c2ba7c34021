#!/usr/bin/env bash
# `teratron preprocess` end to end from a file of JSON lines on disk, with 1 and 2 workers, and the memory that it needs
# for a large input. Writes bench/results/preprocess_<machine>_<date>.md.
#
#   bench/run_preprocess.sh CORPUS.jsonl [build folder]       ROUNDS=3  LARGE_GB=5 (0: leave out)  VOCABULARIES=../shared/data
#
# CORPUS comes from bench/make_text_corpus.sh; the large input is the corpus again and again, in a temporary folder
# (TMPDIR) that needs room for twice its size.
set -euo pipefail
corpus=$(realpath "${1:?run_preprocess.sh: give the corpus}")
cd "$(dirname "$0")/.."
build=${2:-build}
[ -x "$build/teratron" ] || { echo "run_preprocess.sh: $build/teratron is not built; run scripts/build.sh" >&2; exit 2; }
exec python3 bench/peers/preprocess_report.py "$corpus" "$build/teratron" "${VOCABULARIES:-../shared/data}/gpt2"
