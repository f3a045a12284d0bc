#!/bin/sh
# Instructions for each allocation and each free, by policy, without debugging; needs valgrind.
# Counted are whole loops (loads/src/bin/instructions.rs), so the loop's own few are in it, and
# all slow paths that the load needs.
# usage: slabcore/callgrind.sh [--check] [POLICY]...
#   --check  compare with slabcore/instructions.limits; more than a limit is an error
set -eu
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || {
    echo "valgrind is missing (Debian: apt-get install valgrind)" >&2
    exit 1
}
check=
if [ "${1:-}" = --check ]; then
    check=yes
    shift
fi
cargo build --release --quiet --locked -p slabctl-loads --bin instructions
program=${CARGO_TARGET_DIR:-target}/release/instructions
out=$(mktemp)
trap 'rm -f "$out" "$out.log" "$out.rows"' EXIT

# count POLICY WORK FUNCTION OPERATIONS: instructions in the function and below it, an operation.
count() {
    valgrind --tool=callgrind --callgrind-out-file="$out" --collect-atstart=no \
        --toggle-collect="*instructions::count_$3*" "$program" "$1" "$2" 2>"$out.log" || {
        cat "$out.log" >&2
        exit 1
    }
    awk -v ops="$4" '/^(summary|totals):/ { total = $2 } END { printf "%9.1f", total / ops }' "$out"
}

# 100,000 operations each: one object at a time, 10,000 at a time, 100 at a time in bulk.
row() {
    printf '%-16s' "$1"
    count "$1" pair allocs 100000
    count "$1" pair frees 100000
    count "$1" batch allocs 100000
    count "$1" batch frees 100000
    count "$1" bulk bulk_allocs 100000
    count "$1" bulk bulk_frees 100000
    echo
}

printf '%-16s%9s%9s%9s%9s%9s%9s\n' policy 'pair+' 'pair-' 'batch+' 'batch-' 'bulk+' 'bulk-'
for policy in ${*:-classic cpu-partial delayed-freeze sheaves hybrid}; do
    row "$policy" | tee -a "$out.rows"
done
[ -n "$check" ] || exit 0

# A limit is a little above what was counted; a count of nothing means that nothing was counted.
awk '
    /^#/ || NF == 0 { next }
    NR == FNR { for (n = 2; n <= NF; n++) limit[$1, n] = $n; next }
    {
        for (n = 2; n <= 7; n++) {
            rows++
            if ($n <= 0 || !(($1, n) in limit) || $n > limit[$1, n]) {
                printf "%s, column %d: %s instructions, the limit is %s\n", $1, n, $n, limit[$1, n]
                wrong = 1
            }
        }
    }
    END { exit wrong || !rows }
' slabcore/instructions.limits "$out.rows" >&2
