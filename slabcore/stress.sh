#!/bin/sh
# The stamped stress for minutes: SECONDS per size and policy (default 60), in release mode.
# usage: slabcore/stress.sh [SECONDS] [test name filter]
set -eu
cd "$(dirname "$0")/.."
SLABCORE_STRESS_MS=$((${1:-60} * 1000)) exec cargo test -p slabctl-slabcore --release \
    --test stress "${2:-keep}" -- --nocapture --test-threads 1
