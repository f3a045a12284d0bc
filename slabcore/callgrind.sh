#!/bin/sh
# Instructions for each allocation and each free, by policy, without debugging; needs valgrind.
# Counted are whole loops (loads/src/bin/instructions.rs), so the loop's own few are in it, and
# all slow paths that the load needs.
# usage: slabcore/callgrind.sh [POLICY]...
set -eu
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || {
    echo "valgrind is missing (Debian: apt-get install valgrind)" >&2
    exit 1
}
cargo build --release --quiet --locked -p slabctl-loads --bin instructions
program=${CARGO_TARGET_DIR:-target}/release/instructions
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# count POLICY WORK FUNCTION OPERATIONS: instructions in the function and below it, an operation.
count() {
    valgrind --tool=callgrind --callgrind-out-file="$out" --collect-atstart=no \
        --toggle-collect="*instructions::count_$3*" "$program" "$1" "$2" 2>"$out.log" || {
        cat "$out.log" >&2
        exit 1
    }
    rm -f "$out.log"
    awk -v ops="$4" '/^(summary|totals):/ { total = $2 } END { printf "%9.1f", total / ops }' "$out"
}

# 100,000 operations each: one object at a time, 10,000 at a time, 100 at a time in bulk.
printf '%-16s%9s%9s%9s%9s%9s%9s\n' policy 'pair+' 'pair-' 'batch+' 'batch-' 'bulk+' 'bulk-'
for policy in ${*:-classic cpu-partial delayed-freeze sheaves hybrid}; do
    printf '%-16s' "$policy"
    count "$policy" pair allocs 100000
    count "$policy" pair frees 100000
    count "$policy" batch allocs 100000
    count "$policy" batch frees 100000
    count "$policy" bulk bulk_allocs 100000
    count "$policy" bulk bulk_frees 100000
    echo
done
