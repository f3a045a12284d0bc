#!/bin/sh
# Test programs under valgrind's memcheck: no read of what was not written, by the engine or
# through it. Short sequences, since everything is some fifty times slower.
# usage: slabcore/memcheck.sh
set -eu
cd "$(dirname "$0")/.."
for test in model hooks debug_global; do
    program=$(cargo test --quiet -p slabctl-slabcore --test "$test" --no-run --message-format json |
        sed -n 's/.*"executable":"\([^"]*\/'"$test"'-[^"]*\)".*/\1/p')
    echo "== $test"
    PROPTEST_CASES=2 valgrind -q --error-exitcode=9 "$program" --test-threads 1
done
