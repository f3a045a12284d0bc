#!/usr/bin/env bash
# Tests slabctl in virtual machines with real kernels.
#
#   tests/vm/run.sh [KERNEL..]
#
# KERNEL is 6.1, 6.12, newest or stats (see kernel.sh), or a directory with a
# bzImage and perhaps a slabbug.ko; without one, all four. Each is booted
# twice: plain, and with slab_debug=FZPU. CASES ("20-slabinfo 70-sites") and
# BOOTS ("plain") choose some.
#
# What cannot be had here (a program, a package, disk space) is a line that
# begins with SKIP and says why. Results of every machine stay in the cache,
# below results/.
#
#   SLABCTL                  a static slabctl to test; without it, one is built
#   SLABCTL_VM_CACHE         downloads, kernels, results; default target/vm
#   SLABCTL_VM_STATS_KERNEL  a stats kernel that was built before
#   SLABCTL_VM_MIRROR        an archive of Debian's packages
#
# Exit status: 0 when all checks held, 1 when one did not, 77 when nothing
# could be checked. Docs: docs/VM.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/vm/common.sh
. "$here/common.sh"
[ $# -gt 0 ] || set -- 6.1 6.12 newest stats
for kernel in "$@"; do
    case $kernel in
    6.1 | 6.12 | newest | stats) ;;
    *)
        if [ ! -e "$kernel/bzImage" ]; then
            sed -n '2,23s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
            exit 2
        fi
        ;;
    esac
done
passed=0 failed=0 skipped=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

skipping() {
    echo "SKIP $*"
    skipped=$((skipped + 1))
}

static_slabctl() {
    local triple=x86_64-unknown-linux-gnu
    if [ -n "${SLABCTL:-}" ]; then
        echo "$SLABCTL"
        return
    fi
    say "building a static slabctl"
    (cd "$repository" && RUSTFLAGS='-C target-feature=+crt-static' \
        cargo build --release --locked --quiet -p slabctl --target $triple) >&2
    echo "${CARGO_TARGET_DIR:-$repository/target}/$triple/release/slabctl"
}

# kernel_directory KERNEL: its directory, or status 77 with the reason in $tmp/why.
kernel_directory() {
    if [ -e "$1/bzImage" ]; then
        echo "$1"
    else
        "$here/kernel.sh" "$1" 2> >(tee "$tmp/why" >&2)
    fi
}

count() {
    case $1 in
    "ok "*) passed=$((passed + 1)) ;;
    "skip "*) skipping "$2: ${1#skip }" ;;
    *)
        failed=$((failed + 1))
        echo "FAIL $2: ${1#not ok }"
        ;;
    esac
}

# The host reads the machine's capture and reports the same, byte for byte.
compare_capture() {
    local out=$1 form
    [ -e "$out/capture.tar.gz" ] || return 0
    "$slabctl" report --from "$out/capture.tar.gz" >"$out/host.table" 2>"$out/host.notes" || true
    "$slabctl" report --from "$out/capture.tar.gz" -z --json >"$out/host.json" 2>/dev/null || true
    "$slabctl" report --from "$out/capture.tar.gz" --totals --csv >"$out/host.totals" 2>/dev/null || true
    # The documents name the capture's path.
    sed -i 's|"[^"]*/capture.tar.gz"|"capture.tar.gz"|' "$out/capture.json" "$out/host.json"
    for form in table json totals; do
        if cmp -s "$out/capture.$form" "$out/host.$form"; then
            echo "ok 22-capture: $form on the host" >>"$out/results"
        else
            echo "not ok 22-capture: $form on the host" >>"$out/results"
        fi
    done
}

# machine NAME KERNEL BOOT ARGUMENT..: boots one and counts what it found.
machine() {
    local name=$1 kernel=$2 boot=$3 out=$cache/results/$1-$3 code=0 started=$SECONDS line before
    shift 3
    before=$((passed + failed))
    rm -rf "$out" "$tmp/job"
    mkdir -p "$out" "$tmp/job/cases"
    cp "$slabctl" "$tmp/job/slabctl"
    cp "$here"/guest/{run,lib.sh} "$tmp/job/"
    echo "$boot" >"$tmp/job/boot"
    for line in "$here"/guest/cases/*.sh; do
        case " ${CASES:-} " in "  " | *" $(basename "$line" .sh) "*) cp "$line" "$tmp/job/cases/" ;; esac
    done
    [ ! -e "$kernel/slabbug.ko" ] || cp "$kernel/slabbug.ko" "$tmp/job/"
    "$here/boot.sh" "$kernel/bzImage" "$tmp/job" "$out" "$@" 2>"$tmp/why" || code=$?
    if [ $code -eq 77 ]; then
        skipping "$name $boot: $(tail -n 1 "$tmp/why")"
        return
    elif [ $code -ne 0 ]; then
        failed=$((failed + 1))
        echo "FAIL $name $boot: $(head -n 1 "$tmp/why")"
        return
    fi
    compare_capture "$out"
    while IFS= read -r line; do count "$line" "$name $boot"; done <"$out/results"
    if [ $((passed + failed)) -eq $before ]; then
        failed=$((failed + 1))
        echo "FAIL $name $boot: nothing was checked: $out"
    fi
    printf '%s %s: %d checks in %d s\n' "$name" "$boot" $((passed + failed - before)) $((SECONDS - started))
}

slabctl=$(static_slabctl)
for kernel in "$@"; do
    if ! directory=$(kernel_directory "$kernel"); then
        skipping "kernel $kernel: $(tail -n 1 "$tmp/why")"
        continue
    fi
    for boot in ${BOOTS:-plain debug}; do
        case $boot in
        plain) machine "$(basename "$directory")" "$directory" plain slub_nomerge ;;
        # Kernels since 6.9 take the older spelling too.
        debug) machine "$(basename "$directory")" "$directory" debug slub_debug=FZPU slub_nomerge ;;
        *) skipping "$kernel: no boot is called $boot" ;;
        esac
    done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
