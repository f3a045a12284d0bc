#!/usr/bin/env bash
# What a process pays for being seen from outside:
#   inspected.sh [ROUNDS] [WORKLOAD...]      21 rounds of slabs and random
# A workload of compare/loads.c repeats fixed work in one process, in pairs of windows of at least a second: in one
# slabctl looks at it ten times a second, in the other slabctl is stopped; which is first changes from pair to pair.
# Then the same work runs in processes without and with a segment, in turn. It prints the median of the ratios of the
# workload's own processor time, and the interval that holds the median at 95 % or more.
# With valgrind it counts the instructions of "slabs" with and without a segment, too.
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
import math, os, signal, statistics, subprocess, sys, time

work, words = sys.argv[1], sys.argv[2:]
rounds = int(words.pop(0)) if words else 21
loads = words or ["slabs", "random"]


def start(load, place, forever=()):
    env = dict(os.environ, LD_PRELOAD=work + "/libslabcore_preload.so", SLABCORE_SEGMENT=place)
    return subprocess.Popen([work + "/loads", load, *forever], env=env, stdout=subprocess.PIPE, text=True)


def interval(values):
    """The narrowest ranks around the median with 95 %, and what they hold."""
    values, n = sorted(values), len(values)
    for k in range((n - 1) // 2, -1, -1):
        held = sum(math.comb(n, i) for i in range(k + 1, n - k)) / 2 ** n
        if held >= 0.95:
            break
    return values[k], values[n - 1 - k], held


def tell(what, ratios):
    low, high, held = interval(ratios)
    print(f"{what}: {statistics.median(ratios):.4f} [{low:.4f}, {high:.4f}] ({held:.1%}, {len(ratios)} pairs)", flush=True)


def window(child, n):
    child.stdout.readline()  # Begun in the window before.
    return sum(int(child.stdout.readline()) for _ in range(n))


def looked_at(load):
    child = start(load, "memfd", ["forever"])
    first = min(int(child.stdout.readline()) for _ in range(3))
    n = max(1, math.ceil(1e9 / first))
    look = subprocess.Popen([work + "/slabctl", "report", "--json", "--pid", str(child.pid), "--watch", "100ms"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    ratios = []
    for pair in range(rounds):
        took = {}
        for on in (True, False) if pair % 2 else (False, True):
            look.send_signal(signal.SIGCONT if on else signal.SIGSTOP)
            took[on] = window(child, n)
        ratios.append(took[True] / took[False])
    assert look.poll() is None, "slabctl ended"
    look.kill()
    child.kill()
    tell(f"{load}: looked at ten times a second / not, windows of {n}", ratios)


def once(load, place):
    """Seconds of processor time."""
    child = start(load, place)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = status
    assert status == 0, (load, status)
    return used.ru_utime + used.ru_stime


for load in loads:
    looked_at(load)
    ratios = []
    for n in range(rounds * 3):
        took = {place: once(load, place) for place in (["off", "memfd"] if n % 2 else ["memfd", "off"])}
        ratios.append(took["memfd"] / took["off"])
    tell(f"{load}: with a segment / without", ratios)
PYTHON
