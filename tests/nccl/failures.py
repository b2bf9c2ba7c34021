#!/usr/bin/env python3
"""A rank of a run on GPUs dies, stops or throws at a random moment: it must be named, all processes gone, exit codes
not 0, within 30 s.

    python3 tests/nccl/failures.py build/teratron [--rounds 20] [--first 0] [--ranks 4] [--at-once 3] [--device cuda]

Ranks share the GPUs, started as hand-written scripts do it, with variables: two by two tensor-parallel. Each has its
data to itself, so that one can be made to fail by cutting its file short. A GPU takes about twelve processes at once.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

KINDS = ["kill", "throw", "stop"]
FLAGS = ("pretrain gpt --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 "
         "--micro-batch-size 2 --lr 1e-3 --tokenizer-type NullTokenizer --vocab-size 100 "
         "--log-interval 1 --eval-iters 0 --num-workers 0 --threads 1 --train-iters 1000000 --tensor-model-parallel-size 2 "
         "--no-mmap-bin-files --split 1,0,0").split()


def make_data(binary, folder, ranks):
    lines = folder / "text.jsonl"
    with lines.open("w") as out:
        for i in range(2000):
            out.write('{"text": "%s"}\n' % " ".join(str((i * 7 + j) % 90) for j in range(64)))
    for rank in range(ranks):
        subprocess.run([binary, "preprocess", "--input", str(lines), "--output-prefix", str(folder / f"data{rank}"),
                        "--tokenizer-type", "NullTokenizer", "--vocab-size", "100", "--append-eod", "--workers", "1"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def start(binary, folder, device, port, size):
    ranks = []
    for rank in range(size):
        environment = {**os.environ, "RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": str(size),
                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "NCCL_HOSTID": str(rank),
                       "NCCL_SOCKET_IFNAME": "lo"}
        out = (folder / f"output{rank}").open("w")
        data = next(folder.glob(f"data{rank}*.idx")).with_suffix("")
        ranks.append(subprocess.Popen([binary, *FLAGS, "--global-batch-size", str(4 * size), "--device", device,
                                       "--data-path", str(data)], stdout=out, stderr=subprocess.STDOUT, env=environment))
    return ranks


def one(options, kind, number):
    """Seconds until all were gone, and what is wrong (nothing: '')."""
    draw = random.Random(f"{kind}{number}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_data(options.binary, folder, options.ranks)
        port = 20000 + os.getpid() % 10000 + 100 * number + KINDS.index(kind)
        ranks = start(options.binary, folder, options.device, port, options.ranks)
        try:
            for _ in range(1200):
                time.sleep(0.05)
                if "iteration        3/" in (folder / "output0").read_text():
                    break
            else:
                return 0, "no training: " + (folder / "output0").read_text()[-500:]
            time.sleep(draw.random())
            victim = draw.randrange(options.ranks)
            began = time.time()
            if kind == "kill":
                ranks[victim].kill()
            elif kind == "stop":
                ranks[victim].send_signal(signal.SIGSTOP)
            else:
                os.truncate(next(folder.glob(f"data{victim}*.bin")), 10)
            others = [r for i, r in enumerate(ranks) if i != victim or kind != "stop"]
            while any(r.poll() is None for r in others) and time.time() < began + 60:
                time.sleep(0.02)
            seconds = time.time() - began
            if kind == "stop":
                ranks[victim].send_signal(signal.SIGCONT)
                ranks[victim].wait(20)
            alive = [i for i, r in enumerate(ranks) if r.poll() is None]
            if alive:
                return seconds, f"still there: {alive}"
            if any(r.returncode == 0 for r in ranks):
                return seconds, f"exit codes {[r.returncode for r in ranks]}"
            texts = [(folder / f"output{i}").read_text() for i in range(options.ranks)]
            # Who throws can say so itself; of the others somebody else must speak.
            if not any(re.search(rf"rank {victim}\b", t) for i, t in enumerate(texts) if i != victim or kind == "throw"):
                return seconds, f"rank {victim} is not named: " + " | ".join(t[-200:] for t in texts)
            return seconds, "" if seconds <= 30 else "too late"
        except subprocess.TimeoutExpired:
            return 0, "the stopped rank does not leave when it goes on"
        finally:
            for r in ranks:
                r.kill()
                r.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first round; each has moments of its own")
    parser.add_argument("--ranks", type=int, default=4, help="of each run; even")
    parser.add_argument("--at-once", type=int, default=3, help="so many runs beside each other")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    if (not set(kinds) <= set(KINDS) or options.ranks % 2 or options.rounds < 1 or options.first < 0 or
            not os.access(options.binary, os.X_OK)):
        print(f"failures.py: give a program, an even number of ranks, rounds, and of the kinds {', '.join(KINDS)}",
              file=sys.stderr)
        return 2
    results = {kind: [] for kind in kinds}
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        jobs = {pool.submit(one, options, kind, n): kind for n in range(options.first, options.first + options.rounds)
                for kind in kinds}
        for job in concurrent.futures.as_completed(jobs):
            kind = jobs[job]
            seconds, text = job.result()
            results[kind].append((seconds, text))
            print(f"  {kind} {len(results[kind])}: {text or f'{seconds:.1f} s'}", flush=True)
    wrong = 0
    for kind, all_of_it in results.items():
        bad = sum(bool(text) for _, text in all_of_it)
        wrong += bad
        print(f"{kind}: {len(all_of_it) - bad} of {len(all_of_it)} as they should be, at most "
              f"{max(s for s, _ in all_of_it):.1f} s until all were gone", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
