#!/usr/bin/env bash
# Measures what slabctl costs on this machine, against the kernel's own
# slabinfo tool and slabtop, and on a tree of 10,000 caches.
#
#   sudo docs/benchmarks/collect.sh [--fetch] [--no-build] [--no-parse]
#
#   --fetch     install linux-source with apt and build slabinfo from it
#   --no-build  use the slabctl in $SLABCTL, or the one that is built already
#   --no-parse  leave out the rate at which a slabinfo of 1,000,000 rows is read
#
# SLABINFO=PATH names a built tools/mm/slabinfo. RUNS (21) is how many samples
# are taken of each command, LOOPS (10) how often a sample runs it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$here/target}
runs=${RUNS:-21} loops=${LOOPS:-10} caches=${CACHES:-10000}
fetch=no build=yes parse=yes
for arg in "$@"; do
    case $arg in
        --fetch) fetch=yes ;;
        --no-build) build=no ;;
        --no-parse) parse=no ;;
        *) sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
    esac
done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

if [ ! -r /proc/slabinfo ]; then
    echo "collect.sh: /proc/slabinfo is not readable: run it as root" >&2
    exit 77
fi
if [ "$build" = yes ]; then
    (cd "$here" && cargo build --release --quiet -p slabctl)
fi
slabctl=${SLABCTL:-$target/release/slabctl}

slabinfo=${SLABINFO:-}
if [ -z "$slabinfo" ] && [ "$fetch" = yes ]; then
    apt-get install -y --no-install-recommends linux-source gcc libc6-dev xz-utils >&2
    archive=$(find /usr/src -maxdepth 1 -name 'linux-source-*.tar.xz' | sort -V | tail -n 1)
    # The tool moved from tools/vm to tools/mm in 6.3.
    tar -xf "$archive" -C "$tmp" --wildcards '*/tools/*m/slabinfo.c'
    gcc -O2 -o "$tmp/slabinfo" "$(find "$tmp" -name slabinfo.c | head -n 1)"
    slabinfo=$tmp/slabinfo
fi
if [ -z "$slabinfo" ]; then
    slabinfo=$(command -v slabinfo || true)
fi

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# User and system time of $loops runs, in milliseconds for one.
sample() {
    local TIMEFORMAT='%U %S' i
    { time for ((i = 0; i < loops; i++)); do "$@" >/dev/null 2>&1 || true; done; } 2>&1 |
        awk -v n="$loops" '{ printf "%.3f\n", ($1 + $2) * 1000 / n }'
}

calls() {
    command -v strace >/dev/null || { echo -; return; }
    strace -f -qq -o "$tmp/strace" "$@" >/dev/null 2>&1 || true
    grep -cE '^[0-9]+ +[a-z0-9_]+\(' "$tmp/strace" || true
}

names=() commands=()
add() { names+=("$1"); commands+=("$2"); }
# What starting any program costs here; it is in every row below.
add 'true (starting a program)' /bin/true
add 'slabctl report' "$slabctl report"
add 'slabctl report --json' "$slabctl report --json"
if [ -n "$slabinfo" ]; then
    add 'slabinfo' "$slabinfo"
fi
if command -v slabtop >/dev/null; then
    add 'slabtop -o' 'slabtop -o'
fi

# Interleaved, so that a slow spell of the machine is shared by all.
for ((run = 0; run < runs; run++)); do
    for i in "${!commands[@]}"; do
        # shellcheck disable=SC2086
        sample ${commands[$i]} >>"$tmp/cpu.$i"
    done
done
peer=
for i in "${!names[@]}"; do
    if [ "${names[$i]}" = slabinfo ]; then
        peer=$(median <"$tmp/cpu.$i")
    fi
done

echo "kernel $(uname -r), $(nproc) CPUs, $(find /sys/kernel/slab -mindepth 1 -maxdepth 1 -type d | wc -l) caches; median of $runs samples of $loops runs"
echo
printf '| %-22s | %12s | %14s | %11s |\n' command 'CPU time, ms' 'of slabinfo' syscalls
printf '|%s|%s|%s|%s|\n' "$(printf -- '-%.0s' {1..24})" "$(printf -- '-%.0s' {1..13}):" "$(printf -- '-%.0s' {1..15}):" "$(printf -- '-%.0s' {1..12}):"
for i in "${!names[@]}"; do
    cpu=$(median <"$tmp/cpu.$i")
    ratio=-
    if [ -n "$peer" ]; then
        ratio=$(awk -v a="$cpu" -v b="$peer" 'BEGIN { printf "%.3f", a / b }')
    fi
    # shellcheck disable=SC2086
    printf '| %-22s | %12s | %14s | %11s |\n' "${names[$i]}" "$cpu" "$ratio" "$(calls ${commands[$i]})"
done
echo

# A tree like /sys/kernel/slab with $caches caches.
tree() {
    local root=$1 i dir name n slabs used
    mkdir -p "$root/proc" "$root/sys/kernel/slab" "$root/sys/devices/system/node"
    echo 0 >"$root/sys/devices/system/node/online"
    exec 9>"$root/proc/slabinfo"
    echo 'slabinfo - version: 2.1' >&9
    echo '# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>' >&9
    for ((i = 0; i < caches; i++)); do
        printf -v name 'cache_%05d' "$i"
        dir=$root/sys/kernel/slab/$name
        mkdir "$dir"
        slabs=$((i % 300)) used=$((slabs * 21 - (slabs > 3 ? 40 : 0)))
        for n in "slab_size 192" "object_size 188" "objs_per_slab 21" "order 0" "align 8" \
            "aliases 0" "min_partial 5" "cpu_partial 120" "usersize 0" "hwcache_align 0" \
            "cache_dma 0" "reclaim_account 1" "destroy_by_rcu 0" "poison 0" "red_zone 0" \
            "sanity_checks 0" "store_user 0" "trace 0" "remote_node_defrag_ratio 100" \
            "cpu_slabs 0" "slabs_cpu_partial 0(0)" "slabs $slabs N0=$slabs" \
            "partial $((slabs > 3 ? 3 : 0)) N0=$((slabs > 3 ? 3 : 0))" \
            "objects_partial 23 N0=23" "objects $used N0=$used" \
            "total_objects $((slabs * 21)) N0=$((slabs * 21))"; do
            echo "${n#* }" >"$dir/${n%% *}"
        done
        : >"$dir/ctor"
        printf '%-17s %6d %6d %6d %4d %4d : tunables %4d %4d %4d : slabdata %6d %6d %6d\n' \
            "$name" "$used" "$((slabs * 21))" 192 21 1 0 0 0 "$slabs" "$slabs" 0 >&9
    done
    exec 9>&-
}
tree "$tmp/root"
loops=1
printf '| %-40s | %12s |\n' "tree of $caches caches on disk" 'CPU time, ms'
printf '|%s|%s|\n' "$(printf -- '-%.0s' {1..42})" "$(printf -- '-%.0s' {1..13}):"
for args in 'report' 'report --json'; do
    for ((run = 0; run < 7; run++)); do
        # shellcheck disable=SC2086
        sample "$slabctl" --root "$tmp/root" $args
    done | median >"$tmp/big"
    printf '| %-40s | %12s |\n' "slabctl --root $args" "$(cat "$tmp/big")"
done
echo

if [ "$parse" = yes ]; then
    echo 'slabinfo of 1,000,000 rows (cargo bench):'
    (cd "$here" && cargo bench --quiet -p slabctl-collectors --bench slabinfo 2>/dev/null) |
        grep -E 'time:|thrpt:' || true
fi
