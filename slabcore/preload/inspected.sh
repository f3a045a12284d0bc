#!/usr/bin/env bash
# What a process pays for being seen from outside:
#   inspected.sh [ROUNDS] [WORKLOAD...]      21 rounds of slabs, random and xmalloc
# Each round runs a workload of compare/loads.c with fixed work in three ways, beginning with another one each time: without a
# segment, with one, and looked at ten times a second by slabctl. It
# prints the medians of the workload's own processor time, and the ratios of pairs of one round with the interval that
# holds the median at 95 % or more. With valgrind it counts the instructions of "slabs" with and without a segment, too.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
target=${CARGO_TARGET_DIR:-$here/../../target}
cargo build --release --locked --quiet --manifest-path "$here/Cargo.toml"
cargo build --release --locked --quiet --manifest-path "$here/../../slabctl/Cargo.toml"
cp "$target/release/libslabcore_preload.so" "$target/release/slabctl" "$work/"
cc -O2 -fno-builtin -pthread -o "$work/loads" "$here/compare/loads.c"

if command -v valgrind >/dev/null; then
  for place in off memfd; do
    SLABCORE_SEGMENT=$place LD_PRELOAD=$work/libslabcore_preload.so valgrind --tool=callgrind \
      --callgrind-out-file="$work/out" "$work/loads" slabs >/dev/null 2>&1
    awk -v place="$place" '/^(summary|totals):/ { n = $2 } END { printf "slabs, segment %s: %.0f million instructions\n", place, n / 1e6 }' "$work/out"
  done
fi

exec python3 - "$work" "$@" <<'PYTHON'
import math, os, statistics, subprocess, sys

work, words = sys.argv[1], sys.argv[2:]
rounds = int(words.pop(0)) if words else 21
loads = words or ["slabs", "random", "xmalloc"]
WAYS = ["no segment", "segment", "looked at"]


def run(load, way):
    """The load's own seconds of processor time."""
    env = dict(os.environ, LD_PRELOAD=work + "/libslabcore_preload.so")
    env["SLABCORE_SEGMENT"] = "off" if way == "no segment" else "memfd"
    pid = os.posix_spawn(work + "/loads", ["loads", load], env,
                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    look = None
    if way == "looked at":
        look = subprocess.Popen([work + "/slabctl", "report", "--json", "--pid", str(pid), "--watch", "100ms"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(pid, 0)
    assert status == 0, (load, way, status)
    if look:
        look.wait()
    return used.ru_utime + used.ru_stime


def interval(values):
    """The narrowest ranks around the median with 95 %, and what they hold."""
    values, n = sorted(values), len(values)
    for k in range((n - 1) // 2, -1, -1):
        held = sum(math.comb(n, i) for i in range(k + 1, n - k)) / 2 ** n
        if held >= 0.95:
            break
    return values[k], values[n - 1 - k], held


for load in loads:
    seen = {way: [] for way in WAYS}
    for n in range(rounds):
        for way in WAYS[n % 3:] + WAYS[:n % 3]:
            seen[way].append(run(load, way))
    for way in WAYS:
        print(f"{load}: {way}: {statistics.median(seen[way]):.3f} s")
    for base, way in [("no segment", "segment"), ("segment", "looked at")]:
        ratios = [b / a for a, b in zip(seen[base], seen[way])]
        low, high, held = interval(ratios)
        print(f"{load}: {way} / {base}: {statistics.median(ratios):.4f} [{low:.4f}, {high:.4f}] ({held:.1%}, {rounds} rounds)")
PYTHON
