#!/bin/sh
# ripgrep as published, on the engine: the same output as on the system's allocator under each
# policy and with full debugging, no findings at the end; and what it costs in time.
# Takes the crate from the registry; changes nothing outside of a temporary directory.
# usage: slabcore/real-program.sh [DIRECTORY TO SEARCH] [ROUNDS]
set -eu
core=$(cd "$(dirname "$0")" && pwd)
searched=$(cd "${1:-$core/..}" && pwd)
rounds=${2:-5}
version=15.2.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# The crate's sources, by way of a package that names it.
mkdir fetch fetch/src
printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n[dependencies]\nripgrep = "=%s"\n' \
    "$version" >fetch/Cargo.toml
: >fetch/src/lib.rs
(cd fetch && cargo fetch --quiet)
for source in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/ripgrep-"$version"; do :; done
cp -r "$source" rg
chmod -R u+w rg
cp rg/crates/core/main.rs plain.rs

cat >>rg/Cargo.toml <<TOML

[dependencies.slabcore]
package = "slabctl-slabcore"
path = "$core"

[workspace]
TOML
# The engine is chosen when the program starts; what main did is done before the check.
perl -pe 's/^fn main\(\) -> ExitCode/fn searches() -> ExitCode/' plain.rs >rg/crates/core/main.rs
cat >>rg/crates/core/main.rs <<'RUST'

mod on_slabcore {
    use slabcore::{EngineConfig, Policy, SlabAlloc};
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    const fn heap(policy: Policy, debug: Option<&'static str>) -> SlabAlloc {
        SlabAlloc::with(EngineConfig { policy, debug, ..EngineConfig::new() })
    }
    static HEAPS: [SlabAlloc; 6] = [
        heap(Policy::Classic, None),
        heap(Policy::CpuPartial, None),
        heap(Policy::DelayedFreeze, None),
        heap(Policy::Sheaves, None),
        heap(Policy::Hybrid, None),
        heap(Policy::Hybrid, Some("FZPU")),
    ];
    static CHOSEN: AtomicUsize = AtomicUsize::new(usize::MAX);

    unsafe extern "C" {
        fn getenv(name: *const std::ffi::c_char) -> *const u8;
    }

    /// 0 to 5, or none: the system's allocator.
    fn chosen() -> Option<&'static SlabAlloc> {
        let mut at = CHOSEN.load(Relaxed);
        if at == usize::MAX {
            let value = unsafe { getenv(c"RG_HEAP".as_ptr()) };
            at = if value.is_null() { 99 } else { usize::from(unsafe { *value } - b'0') };
            CHOSEN.store(at, Relaxed);
        }
        HEAPS.get(at)
    }

    struct Chosen;
    #[global_allocator]
    static GLOBAL: Chosen = Chosen;
    unsafe impl GlobalAlloc for Chosen {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            unsafe { chosen().map_or_else(|| System.alloc(layout), |it| it.alloc(layout)) }
        }
        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            unsafe { chosen().map_or_else(|| System.alloc_zeroed(layout), |it| it.alloc_zeroed(layout)) }
        }
        unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
            unsafe { chosen().map_or_else(|| System.dealloc(at, layout), |it| it.dealloc(at, layout)) }
        }
        unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            unsafe { chosen().map_or_else(|| System.realloc(at, layout, size), |it| it.realloc(at, layout, size)) }
        }
    }

    /// No findings, no reports; tells counts when asked to.
    pub fn is_sound() -> bool {
        let Some(engine) = chosen().and_then(SlabAlloc::engine) else {
            return true;
        };
        let found = engine.validate();
        let snapshot = engine.snapshot();
        let faults: u64 = snapshot.caches.iter().map(|it| it.faults).sum();
        if std::env::var_os("RG_TELL").is_some() {
            let sum = |of: fn(&slabcore::CacheSnapshot) -> u64| snapshot.caches.iter().map(of).sum::<u64>();
            eprintln!(
                "{} allocations, {} live, peak {} KiB in slabs and large runs, {} slabs checked",
                sum(|it| it.counters.allocs()), sum(|it| it.objects), snapshot.used_peak >> 10, found.slabs,
            );
        }
        for finding in &found.findings {
            eprintln!("finding: {finding:?}");
        }
        found.findings.is_empty() && faults == 0
    }
}

fn main() -> ExitCode {
    let code = searches();
    if on_slabcore::is_sound() { code } else { ExitCode::from(99) }
}
RUST
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$work/target}/real-program"
export CARGO_PROFILE_RELEASE_DEBUG=0
(cd rg && cargo build --quiet --release)
rg=$CARGO_TARGET_DIR/release/rg

# Matches, counts, replacements, file lists; many threads, so lines are sorted.
searches() {
    "$rg" --no-config --hidden --threads 4 -n 'fn [a-z_]+\(' "$searched"
    "$rg" --no-config --hidden --threads 4 -c -i 'slab|alloc|free' "$searched"
    "$rg" --no-config --threads 4 -o '\b[A-Z]\w{3,}\b' -r '<$0>' "$searched"
    "$rg" --no-config --threads 4 --files "$searched"
    "$rg" --no-config --threads 4 --json 'unsafe' "$searched" | grep -v elapsed
}
searches | sort >expected
echo "$(wc -l <expected) lines of output"
# A pattern without a match ends with 1; unsound memory with 99.
name=0
for policy in classic cpu-partial delayed-freeze sheaves hybrid 'hybrid, FZPU'; do
    RG_HEAP=$name; export RG_HEAP
    searches | sort | cmp - expected || { echo "$policy: other output" >&2; exit 1; }
    status=0
    "$rg" --no-config --threads 4 'no such text [q]z' "$searched" >/dev/null || status=$?
    [ "$status" -eq 1 ] || { echo "$policy: status $status" >&2; exit 1; }
    printf '%-16s ' "$policy"
    RG_TELL=1 "$rg" --no-config --threads 4 -c 'fn ' "$searched" 2>&1 >/dev/null
    name=$((name + 1))
done

# Interleaved; the medians of user and system time together.
timed='import os, resource, subprocess, sys, statistics, time
rounds, rg, where = int(sys.argv[1]), sys.argv[2], sys.argv[3]
names = ["system", "classic", "cpu-partial", "delayed-freeze", "sheaves", "hybrid", "hybrid, FZPU"]
seen = {name: [] for name in names}
for _ in range(rounds):
    for at, name in enumerate(names):
        env = dict(os.environ)
        env.pop("RG_HEAP", None)
        if at: env["RG_HEAP"] = str(at - 1)
        pid = os.posix_spawn(rg, [rg, "--no-config", "--hidden", "-j2", "-o", r"\b\w+\b", where], env,
                             file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
        start = time.monotonic()
        _, status, used = os.wait4(pid, 0)
        assert status == 0, (name, status)
        seen[name].append(used.ru_utime + used.ru_stime)
base = statistics.median(seen["system"])
for name in names:
    cpu = statistics.median(seen[name])
    print(f"{name:16} {cpu:.3f} s of CPU ({cpu / base:.2f})")'
if command -v python3 >/dev/null; then
    python3 -c "$timed" "$rounds" "$rg" "$searched"
fi
