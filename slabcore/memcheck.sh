#!/bin/sh
# Runs tests of the engine under valgrind's memcheck; any error fails. Needs valgrind.
# What it can tell: reads of memory that was never written, system calls with bad arguments,
# accesses outside of mappings. The objects themselves are not known to it as blocks.
# usage: slabcore/memcheck.sh [TEST]...
set -eu
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || {
    echo "valgrind is missing (Debian: apt-get install valgrind)" >&2
    exit 1
}
for test in ${*:-model bulk hooks debug_global}; do
    program=$(cargo test --quiet --locked -p slabctl-slabcore --test "$test" --no-run \
        --message-format=json | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1)
    echo "$test"
    # Short sequences, since everything is some fifty times slower.
    PROPTEST_CASES=2 valgrind --quiet --error-exitcode=9 "$program" --test-threads=1
done
