#!/usr/bin/env bash
# What a process pays for being seen from outside:
#   inspected.sh [ROUNDS] [WORKLOAD...]      40 rounds of slabs and random
# A workload of compare/loads.c repeats fixed work in one process, on a processor of its own, with real-time priority where
# that is allowed; slabctl looks at it ten times a second from another processor. A round is six windows of half a
# second or more, one order and then the same backwards: slabctl looks, slabctl is stopped, and stopped once more, which
# shows the noise. Compared is the processor time that the workload says it took for a window's work.
# Then the same work runs in processes without and with a segment, in turn.
# Of the ratios it prints the mean without the lowest and highest fifth, and the interval that holds 95 % of such means of
# samples of the rounds.
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
import math, os, random, signal, subprocess, sys, time

work, words = sys.argv[1], sys.argv[2:]
rounds = int(words.pop(0)) if words else 40
loads = words or ["slabs", "random"]
processors = sorted(os.sched_getaffinity(0))
random.seed(1)
realtime = subprocess.run(["chrt", "-r", "1", "true"], stderr=subprocess.DEVNULL).returncode == 0
if not realtime:
    print("no real-time priority: expect noise")
if len(processors) < 2:
    print("one processor: looking takes it from the workload, and empties its caches")


def start(load, place, forever=()):
    env = dict(os.environ, LD_PRELOAD=work + "/libslabcore_preload.so", SLABCORE_SEGMENT=place)
    command = ["env", *(f"{name}={env[name]}" for name in ("LD_PRELOAD", "SLABCORE_SEGMENT")), work + "/loads", load, *forever]
    command = ["taskset", "-c", str(processors[0])] + (["chrt", "-r", "1"] if realtime else []) + command
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def middle(values):
    values = sorted(values)
    cut = len(values) // 5
    values = values[cut:len(values) - cut]
    return sum(values) / len(values)


def tell(what, ratios):
    means = sorted(middle(random.choices(ratios, k=len(ratios))) for _ in range(4000))
    print(f"{what}: {middle(ratios):.4f} [{means[100]:.4f}, {means[-101]:.4f}] ({len(ratios)} rounds)", flush=True)


def looked_at(load):
    child = start(load, "memfd", ["forever"])
    first = min(int(child.stdout.readline()) for _ in range(3))
    n = max(1, math.ceil(5e8 / first))
    looks = os.path.join(work, "looks")
    with open(looks, "w") as output:
        look = subprocess.Popen(["taskset", "-c", str(processors[-1]), work + "/slabctl", "report", "--json", "--pid",
                                 str(child.pid), "--watch", "100ms"], stdout=output, stderr=subprocess.DEVNULL)
    time.sleep(0.5)

    def window(on):
        look.send_signal(signal.SIGCONT if on else signal.SIGSTOP)
        child.stdout.readline()  # Begun in the window before.
        return sum(int(child.stdout.readline()) for _ in range(n))

    def number():
        with open(looks) as output:
            return sum('"generated_at"' in line for line in output)

    seen, noise, seconds, before = [], [], 0, number()
    for _ in range(rounds):
        order = random.sample(["look", "stop", "again"], 3)
        took = dict.fromkeys(order, 0)
        for kind in order + order[::-1]:
            began = time.monotonic()
            took[kind] += window(kind == "look")
            seconds += (time.monotonic() - began) * (kind == "look")
        seen.append(2 * took["look"] / (took["stop"] + took["again"]))
        noise.append(took["again"] / took["stop"])
    assert look.poll() is None, "slabctl ended"
    look.kill()
    child.kill()
    tell(f"{load}: looked at {(number() - before) / seconds:.1f} times a second / not, windows of {n} of {first / 1e6:.0f} ms", seen)
    tell(f"{load}: not / not", noise)


def once(load, place):
    """Seconds of processor time."""
    child = start(load, place)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = status
    assert status == 0, (load, status)
    return used.ru_utime + used.ru_stime


for load in loads:
    looked_at(load)
    segment, noise = [], []
    for _ in range(rounds * 2):
        order = random.sample(["memfd", "off", "again"], 3)
        took = dict.fromkeys(order, 0)
        for kind in order + order[::-1]:
            took[kind] += once(load, "memfd" if kind == "memfd" else "off")
        segment.append(2 * took["memfd"] / (took["off"] + took["again"]))
        noise.append(took["again"] / took["off"])
    tell(f"{load}: with a segment / without", segment)
    tell(f"{load}: without / without", noise)
PYTHON
