#!/usr/bin/env bash
# Measures what `slabctl top` costs on this machine, beside other monitors and
# by the same method: a program on a pseudo-terminal of 120x40 at one sample a
# second, its processor time and memory from /proc/PID, its bytes counted.
#
#   sudo docs/benchmarks/top.sh [SECONDS]      (60)
#
# SLABCTL names the program (target/release/slabctl). Monitors that are not
# installed are left out. CACHES (5000) is the size of the large made-up tree.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
slabctl=${SLABCTL:-${CARGO_TARGET_DIR:-$here/target}/release/slabctl}
[ -x "$slabctl" ] || { echo "top.sh: build it first: cargo build --release -p slabctl" >&2; exit 1; }
[ -r /proc/slabinfo ] || { echo "top.sh: /proc/slabinfo is not readable: run it as root" >&2; exit 77; }

exec python3 - "$slabctl" "${1:-60}" "${CACHES:-5000}" <<'PYTHON'
import fcntl, os, pty, select, shutil, signal, struct, sys, tempfile, termios, time

slabctl, seconds, caches = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
TICK = os.sysconf("SC_CLK_TCK")


class Program:
    """A program on a pseudo-terminal of 120x40."""

    def __init__(self, words):
        self.began = time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
            os.environ.update(TERM="xterm-256color", LANG="C.UTF-8")
            os.execvp(words[0], words)
        self.bytes = 0

    def read(self, until, wanted=None):
        """Reads until a time, or until something is seen; tells how long."""
        seen = b""
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([self.fd], [], [], left)
            if ready:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:
                    return None
                self.bytes += len(data)
                seen = seen[-256:] + data
                if wanted and wanted in seen:
                    return time.monotonic()
        return None

    def cpu(self):
        """Processor time in ticks: user and system."""
        with open(f"/proc/{self.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def exact(self):
        """Processor time in nanoseconds over all threads, where the kernel tells it."""
        total = 0
        for thread in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{thread}/schedstat") as f:
                total += int(f.read().split()[0])
        return total

    def rss(self):
        with open(f"/proc/{self.pid}/status") as f:
            return next(int(l.split()[1]) for l in f if l.startswith("VmRSS"))

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def measure(name, words, settle=5):
    program = Program(words)
    program.read(time.monotonic() + settle)
    try:
        cpu, exact, bytes_, start = program.cpu(), program.exact(), program.bytes, time.monotonic()
        program.read(start + seconds)
        wall = time.monotonic() - start
        ticks = (program.cpu() - cpu) / TICK / wall * 100
        share = (program.exact() - exact) / 1e9 / wall * 100
        rate = (program.bytes - bytes_) / wall
        print(f"| {name} | {share:.2f} | {ticks:.2f} | {program.rss() / 1024:.1f} | {rate / 1024:.2f} |", flush=True)
    finally:
        program.end()


def median(values):
    return sorted(values)[len(values) // 2]


def first_frame(words, wanted):
    times = []
    for _ in range(9):
        program = Program(words)
        seen = program.read(time.monotonic() + 10, wanted)
        times.append((seen - program.began) * 1000)
        program.end()
    return median(times)


def key_to_frame(words, wanted):
    program = Program(words)
    program.read(time.monotonic() + 3)
    times = []
    for _ in range(25):
        program.read(time.monotonic() + 0.13)
        pressed = time.monotonic()
        os.write(program.fd, b"?")
        seen = program.read(pressed + 5, wanted)
        times.append((seen - pressed) * 1000)
        os.write(program.fd, b"\r")
        program.read(time.monotonic() + 0.13)
    program.end()
    return median(times), max(times)


def large_tree(root):
    """A kernel with many caches, in the layout of /proc and /sys."""
    slab = os.path.join(root, "sys/kernel/slab")
    rows = ["slabinfo - version: 2.1\n", "# name <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>\n"]
    static = {"object_size": 64, "slab_size": 64, "objs_per_slab": 64, "order": 0, "align": 8, "min_partial": 5,
              "cpu_partial": 120, "reclaim_account": 0, "ctor": "", "aliases": 0, "usersize": 0, "cache_dma": 0,
              "hwcache_align": 0, "poison": 0, "red_zone": 0, "sanity_checks": 0, "store_user": 0, "trace": 0,
              "destroy_by_rcu": 0, "sheaf_capacity": 0, "remote_node_defrag_ratio": 100}
    for n in range(caches):
        slabs = n % 97 + 1
        name = f"cache_{n:05}"
        rows.append(f"{name} {slabs * 60} {slabs * 64} 64 64 1 : tunables 0 0 0 : slabdata {slabs} {slabs} 0\n")
        folder = os.path.join(slab, name)
        os.makedirs(folder)
        lists = {"slabs": f"{slabs} N0={slabs}", "partial": f"{n % 9} N0={n % 9}", "cpu_slabs": "2 N0=2",
                 "objects": f"{slabs * 60} N0={slabs * 60}", "total_objects": f"{slabs * 64} N0={slabs * 64}",
                 "objects_partial": "10 N0=10", "slabs_cpu_partial": "1(10) C0=1(10)"}
        for file, text in {**static, **lists}.items():
            with open(os.path.join(folder, file), "w") as f:
                f.write(f"{text}\n")
    os.makedirs(os.path.join(root, "proc"))
    with open(os.path.join(root, "proc/slabinfo"), "w") as f:
        f.writelines(rows)
    os.makedirs(os.path.join(root, "sys/devices/system/node"))
    with open(os.path.join(root, "sys/devices/system/node/has_memory"), "w") as f:
        f.write("0\n")


with open("/proc/slabinfo") as f:
    here = sum(1 for _ in f) - 2
print(f"{here} caches, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, {seconds} s each\n")
print("| program | % of a processor | by ticks | RSS MiB | terminal KiB/s |\n|---|---|---|---|---|")
measure("slabctl top", [slabctl, "top"])
for name, words in [
    ("slabtop -d 1", ["slabtop", "-d", "1"]),
    ("htop -d 10", ["htop", "-d", "10"]),
    ("btop", ["btop"]),
    ("atop 1", ["atop", "1"]),
]:
    if shutil.which(words[0]):
        measure(name, words)
measure("slabctl top, cache screen", [slabctl, "top", "--screen", "cache"])
with tempfile.TemporaryDirectory(dir="/dev/shm") as root:
    large_tree(root)
    measure(f"slabctl top, {caches} caches", [slabctl, "top", "--root", root, "-z"])
print(f"\nfirst frame: {first_frame([slabctl, 'top'], b'Space'):.0f} ms (median of 15)")
key, worst = key_to_frame([slabctl, "top"], b"Keys: type")
print(f"key to frame: {key:.1f} ms (median of 25), {worst:.1f} ms at the most")
PYTHON
