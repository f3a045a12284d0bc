# shellcheck shell=bash
# What the scripts share: where things are kept, and how one says that it
# cannot go on. Sourced by others, which set $here.

repository=$(cd "$here/../.." && pwd)
# Downloads and builds: about 60 MB of them stay.
cache=${SLABCTL_VM_CACHE:-${CARGO_TARGET_DIR:-$repository/target}/vm}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

say() { echo "$*" >&2; }

# skip REASON: the caller cannot do its work here. The reason is the last line
# of standard error, and run.sh shows it.
skip() {
    echo "$*" >&2
    exit 77
}

# need TOOL:PACKAGE..: skips when a program is missing.
need() {
    local pair
    for pair in "$@"; do
        command -v "${pair%%:*}" >/dev/null || skip "no ${pair%%:*} (package ${pair#*:})"
    done
}
