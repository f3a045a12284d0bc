#!/usr/bin/env bash
# Fuzzes the parsers: run.sh [SECONDS_PER_TARGET] [TARGET...]
#
# Builds once, runs every target (or those named) for that long, prints
# executions and coverage, and exits with 1 when a target failed. What made it
# fail is kept in artifacts/TARGET/. Inputs that reach new code are kept in
# corpus/TARGET/ for the next run. JOBS=2 runs two targets at once; RUNS=500
# does that many runs of each target from a fixed seed instead of a time, and
# SLOW=60 is how many seconds one input may take before it counts as a hang.
set -euo pipefail

cd "$(dirname "$0")"
here=$PWD
triple=$(rustc -vV | sed -n 's/^host: //p')
target_dir=${CARGO_TARGET_DIR:-$here/target}
binary=$target_dir/$triple/release/fuzz
data=$here/../collectors/tests/data
jobs=${JOBS:-1} runs=${RUNS:-}

targets_all="slabinfo slabtop slabinfo_tool crash_kmem oom_table alias_listing traces
sections sysfs meminfo filter archive text scaled diff order kernel_log segment process image"

seconds=60
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
    seconds=$1
    shift
fi
targets=${*:-$targets_all}

# LLVM's coverage pass is in stable Rust; only the shorthand -Zsanitizer is not.
# --target keeps these flags away from build scripts and procedural macros.
build() {
    local level=-Cllvm-args=-sanitizer-coverage
    RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module $level-level=4 \
$level-inline-8bit-counters $level-pc-table $level-trace-compares -Ccodegen-units=4" \
        cargo build --quiet --locked --release --target "$triple"
}

# Seeds are made from the test data, so that nothing is stored twice.
seeds() {
    local out=$here/seeds
    rm -rf "$out"
    mkdir -p "$out"
    for target in $targets_all; do
        mkdir -p "$out/$target" "$here/corpus/$target" "$here/artifacts/$target"
    done
    cp "$data"/slabinfo/*.txt "$out/slabinfo/"
    cp "$data"/text/slabtop* "$data"/text/oom-and-slabtop* "$out/slabtop/"
    cp "$data"/text/slabinfo-tool* "$out/slabinfo_tool/"
    cp "$data"/text/crash* "$out/crash_kmem/"
    cp "$data"/text/oom* "$out/oom_table/"
    cp "$data"/text/ls-* "$data"/text/slabinfo-tool-aliases* "$out/alias_listing/"
    cp "$data"/text/alloc* "$data"/text/free* "$out/traces/"
    cp "$data"/text/sections* "$out/sections/"
    cp "$data"/slabinfo/*.txt "$data"/text/*.txt "$out/text/"
    cp "$data"/kernels/*.tar.xz "$out/archive/"
    cp "$data"/log/*.txt "$data"/text/oom* "$here"/../slabcore/tests/data/report-*.txt \
        "$out/kernel_log/"
    xz -dc "$data"/log/planted-6.1-console.txt.xz >"$out/kernel_log/planted-6.1-console"
    printf 'slabcore\1\0\0\0\200\0\0\0\0\0\20\0\0\0\0\0\4\3\2\1\7\0\0\0' >"$out/segment/1"
    head -c 4096 "$here/Cargo.lock" >"$out/process/1"
    head -c 600 /dev/zero >"$out/process/2"
    process_seeds "$out"
    small_seeds "$out"
    tree_seeds "$out"
    diff_seeds "$out"
}

# A true segment, which the built program writes, and words for changes of a true process.
process_seeds() {
    local out=$1 n
    FUZZ_TARGET=segment_seed FUZZ_TEMPLATE=$out/true "$binary" -runs=1 2>/dev/null
    head -c 131072 "$out/true" >"$out/segment/2"
    rm "$out/true"
    for n in 1 2 3 4 5 6 7 8; do
        # shellcheck disable=SC2059
        printf "\\$(printf %03o "$n")\\0\\$(printf %03o "$((n * 5))")\\0\\377\\377\\377\\377\\0\\0\\0\\0"
    done >"$out/image/1"
}

small_seeds() {
    local out=$1 n=0 value
    for value in '192' '1' '356 N0=300 N1=56' '42(4) C0=2(1) C1=40(3)' \
        '664 C0=603 C1=61' '0-3,7' 'ext4_inode_init_once+0x0/0x40'; do
        printf '%s\n' "$value" >"$out/sysfs/$n"
        n=$((n + 1))
    done
    for value in 'kmalloc-*' 'objects > 10k and not (dentry or /ext4/)' \
        'memory>=10M utilization<50%' 'name ~ "^k" || slabs != 0' ':aA-*'; do
        printf '%s' "$value" >"$out/filter/$n"
        n=$((n + 1))
    done
    printf 'MemTotal: 16384 kB\nMemFree: 1 kB\nBuffers: 0 kB\nCached: 0 kB\nSlab: 900 kB\nSReclaimable: 400 kB\nSUnreclaim: 500 kB\n' >"$out/meminfo/1"
    printf 'Node 0, zone   Normal   2625   6627  10214      0      3\n' >"$out/meminfo/2"
    printf 'some avg10=0.00 avg60=1.07 avg300=0.10 total=13\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n' >"$out/meminfo/3"
    printf '\xc0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0' >"$out/order/1"
    printf 'lrwxrwxrwx 1 root root 0 Jan  1 00:00 n# -> :A-0000#\n' >"$out/scaled/1"
    printf 'lrwxrwxrwx 1 root root 0 Jan  1 00:00 n# -> :A-0000192\n' >"$out/scaled/2"
    printf 'slabinfo - version: 2.1\nn# 1 2 3 4 5 : tunables 0 0 0 : slabdata 1 1 0\n' >"$out/scaled/3"
    printf '==> /sys/kernel/slab/n#/slabs <==\n1\n\n' >"$out/scaled/4"
    for value in "$data"/text/*.txt; do
        tail -n 2 "$value" | sed 's/^\([a-z]\)/\1#/' >"$out/scaled/$(basename "$value")"
    done
}

# A small saved tree, as archives and as one text.
tree_seeds() {
    local out=$1 tree cache
    tree=$(mktemp -d)
    mkdir -p "$tree"/{proc,sys/kernel/slab/{:A-0000192,dentry}}
    cp "$data/slabinfo/three-rows.txt" "$tree/proc/slabinfo"
    cp "$out/meminfo/1" "$tree/proc/meminfo"
    ln -s :A-0000192 "$tree/sys/kernel/slab/cred"
    for cache in :A-0000192 dentry; do
        cp "$out/sysfs/0" "$tree/sys/kernel/slab/$cache/slab_size"
        cp "$out/sysfs/2" "$tree/sys/kernel/slab/$cache/slabs"
        cp "$out/sysfs/4" "$tree/sys/kernel/slab/$cache/alloc_fastpath"
    done
    tar -C "$tree" --format=gnu -cf "$out/archive/gnu" .
    tar -C "$tree" --format=pax -cf "$out/archive/pax" .
    tar -C "$tree" --format=v7 -cf "$out/archive/v7" proc sys
    gzip -c "$out/archive/gnu" >"$out/archive/gz"
    xz -c "$out/archive/gnu" >"$out/archive/xz"
    if command -v zstd >/dev/null; then
        zstd -qc "$out/archive/gnu" >"$out/archive/zst"
    fi
    (cd "$tree" && find . -type f | sed 's/^\.//' | while read -r file; do
        printf '==> %s <==\n' "$file"
        cat ".$file"
        echo
    done) >"$out/sections/tree"
    cp "$out/sections/tree" "$out/text/tree"
    rm -rf "$tree"
}

diff_seeds() {
    local out=$1 file
    for file in "$data"/slabinfo/three-rows.txt "$data"/slabinfo/openharmony.txt \
        "$data"/text/slabtop-coreos-ebitmap.txt "$out"/sections/tree; do
        { cat "$file"; printf '\n=====\n'; sed '2d' "$file"; } >"$out/diff/$(basename "$file")"
    done
}

options() {
    local max=131072 dict time=5
    case $1 in
        slabinfo) dict=slabinfo ;;
        filter) dict=filter max=4096 ;;
        archive) dict=archive ;;
        order) dict= max=64 ;;
        scaled) dict=tables max=256 time=10 ;;
        sysfs) dict= max=8192 ;;
        kernel_log) dict=kernel_log ;;
        *) dict=tables ;;
    esac
    echo "-max_len=$max -timeout=${SLOW:-$time} ${dict:+-dict=$here/dict/$dict.dict}"
}

run() {
    local target=$1 log=$here/logs/$1.log code=0 execs rate cover limit
    limit="-max_total_time=$seconds"
    if [[ $runs ]]; then
        limit="-runs=$runs -seed=1"
    fi
    # shellcheck disable=SC2046,SC2086
    FUZZ_TARGET=$target RUST_BACKTRACE=1 "$binary" \
        $limit -rss_limit_mb=512 -print_final_stats=1 \
        -artifact_prefix="$here/artifacts/$target/" $(options "$target") \
        "$here/corpus/$target" "$here/seeds/$target" >"$log" 2>&1 || code=$?
    execs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
    cover=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    printf '%-14s %12s runs %8s/s  coverage %6s  %s\n' "$target" "${execs:--}" "${rate:--}" \
        "${cover:--}" "$([[ $code -eq 0 ]] && echo ok || echo "FAILED, see $log")"
    return "$code"
}

build
mkdir -p logs
seeds
if [[ ${BUILD_ONLY:-} ]]; then
    exit
fi

failed=0
for target in $targets; do
    if [[ $(jobs -rp | wc -l) -ge $jobs ]]; then
        wait -n || failed=1
    fi
    run "$target" &
done
while [[ $(jobs -p | wc -l) -gt 0 ]]; do
    wait -n || { [[ $? -eq 127 ]] && break; failed=1; }
done
exit "$failed"
