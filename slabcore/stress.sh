#!/bin/sh
# The long versions of the proofs that CI runs for a moment, in release mode:
#   stress   stamped objects, each size and policy
#   storm    everything at once, each policy and set of debug flags
#   debug    classes with all flags under load
#   fork     forks while threads use all caches
#   shuttle  the whole engine under random schedules
# SECONDS is the time for each part of the first three (20, 85 and 5 parts; default 10 seconds);
# of the last it is the thousands of schedules for each model, policy and kind of scheduler.
# usage: slabcore/stress.sh [SECONDS] [stress|storm|debug|fork|shuttle]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-10}
only=${2:-}
export SLABCORE_STRESS_MS=$((seconds * 1000)) SLABCORE_SCHEDULES=$((seconds * 1000))

# proof NAME TEST [FILTER]: one program, one part after the other.
proof() {
    if [ -z "$only" ] || [ "$only" = "$1" ]; then
        name=$1 test=$2
        shift 2
        echo "== $name"
        cargo test -p slabctl-slabcore --release --test "$test" "$@" -- --nocapture --test-threads 1
    fi
}
proof stress stress keep
proof storm storm
proof debug debug_caches loaded
proof fork fork storm
target=${CARGO_TARGET_DIR:-$PWD/target}
RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=$target/shuttle proof shuttle shuttle
