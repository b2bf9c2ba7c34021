# Shared by the scripts: colours, messages, where the repository is. Sourced, never run.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

if [ -t 1 ]; then BOLD=$'\e[1m' PLAIN=$'\e[0m'; else BOLD="" PLAIN=""; fi

# step TEXT: announces a stage, with the time since the script started.
step() { printf '\n%s== %s%s  [%d:%02d]\n' "$BOLD" "$*" "$PLAIN" $((SECONDS / 60)) $((SECONDS % 60)); }
note() { printf '   %s\n' "$*"; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }
# misuse WHAT: the same for a command line that asks for what is not there.
misuse() { printf "%s: %s\n" "$(basename "$0")" "$*" >&2; exit 2; }

# usage: prints the comment at the top of the running script.
usage() { sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0"; }

# Compilers to run at once: all cores, but no more than the memory holds (some 1.5 GB each).
jobs_that_fit() {
    local cores kib
    cores=$(nproc)
    kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo 2>/dev/null || echo 0)
    local by_memory=$((kib / 1500000))
    [ "$by_memory" -ge 1 ] || by_memory=1
    echo $((cores < by_memory ? cores : by_memory))
}

# Prints the path of nvcc, or fails.
find_nvcc() {
    command -v nvcc && return
    local candidate
    for candidate in "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" /usr/local/cuda/bin/nvcc; do
        [ -x "$candidate" ] && echo "$candidate" && return
    done
    return 1
}

has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU; }
