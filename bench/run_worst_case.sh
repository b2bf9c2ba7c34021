#!/usr/bin/env bash
# Text that is hard on tokenizers, repeated to 1 and 10 MB for every pattern and every other kind of tokenizer, and to
# 100 MB for the pattern of cl100k_base: nanoseconds of processor time per byte, which must not grow with the size.
# Writes bench/results/tokenize_worst_case_<machine>_<date>.md.
#
#   bench/run_worst_case.sh [build folder]      VOCABULARIES=../shared/data
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
ranks=${VOCABULARIES:-../shared/data}/tiktoken/cl100k_base.tiktoken.gz
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$build/bench/tokenize" --worst-case --megabytes 1,10,100 --pattern cl100k --ranks "$ranks" | tee "$log" >&2
"$build/bench/tokenize" --worst-case --megabytes 1,10 --ranks "$ranks" | grep -v '"pattern": "cl100k"' | tee -a "$log" >&2
# Kinds that do not cut text by one of these patterns. The small models among the tests have pieces for repeated text.
golden=tests/golden
while read -r type file; do
    "$build/bench/tokenize" --worst-case --megabytes 1,10 --type "$type" --file "$file" | tee -a "$log" >&2
done <<EOF
GPTSentencePieceTokenizer ${VOCABULARIES:-../shared/data}/sentencepiece/bpe-example.model
GPTSentencePieceTokenizer $golden/sentencepiece/bpe_across.model
GPTSentencePieceTokenizer $golden/sentencepiece/unigram.model
GPTSentencePieceTokenizer $golden/sentencepiece/unigram_bytes.model
BertWordPieceLowerCase ${VOCABULARIES:-../shared/data}/bert/bert-base-uncased-vocab.txt
HuggingFaceTokenizer $golden/hf/unigram
HuggingFaceTokenizer $golden/hf/llama2
HuggingFaceTokenizer $golden/hf/bert
EOF
python3 bench/peers/worst_case_report.py "$log"
