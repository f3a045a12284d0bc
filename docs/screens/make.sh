#!/usr/bin/env bash
# Makes the pictures of this directory: `slabctl top` on the built-in engine, on
# a pseudo-terminal of 112x34, which writes its own screen (`e`).
#
#   docs/screens/make.sh            SLABCTL names the program (target/release/slabctl)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
slabctl=${SLABCTL:-${CARGO_TARGET_DIR:-$here/../../target}/release/slabctl}
[ -x "$slabctl" ] || { echo "make.sh: build it first: cargo build --release -p slabctl" >&2; exit 1; }

exec python3 - "$slabctl" "$here" <<'PYTHON'
import fcntl, os, pty, select, signal, struct, sys, termios, time

slabctl, here = sys.argv[1:]
# Screen, seconds to wait, keys.
SCREENS = [
    ("overview", 12, ""),
    ("cache", 12, "/demo_sheaves\r2"),
    ("cpus", 8, "3"),
    ("diff", 3, "m4"),
    ("checks", 8, "6"),
]


def drain(fd, seconds):
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([fd], [], [], left)[0]:
            try:
                os.read(fd, 65536)
            except OSError:  # it has ended
                return


for name, wait, keys in SCREENS:
    path = os.path.join(here, f"{name}.svg")
    if os.path.exists(path):
        os.remove(path)
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 34, 112, 0, 0))
        os.environ.update(TERM="xterm-256color", LANG="C.UTF-8")
        os.environ.pop("NO_COLOR", None)
        os.execv(slabctl, [slabctl, "top", "--demo"])
    drain(fd, 1)
    os.write(fd, keys.encode())
    drain(fd, wait)
    os.write(fd, f"e{path}\r".encode())
    drain(fd, 1)
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    print(f"{path}: {os.path.getsize(path)} bytes")
PYTHON
