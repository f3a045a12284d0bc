#!/bin/sh
# Breaks the engine in one place after the other and expects a model to fail each time.
# It works on a copy of the sources. Prints one line for each mutant; fails if one survives.
# usage: slabcore/mutants.sh [NAME FILTER]
set -eu
cd "$(dirname "$0")/.."
only=${1:-}
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | tar --null -cf - -T - | tar -xf - -C "$copy"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/mutants"
export CARGO_PROFILE_RELEASE_LTO=off \
    CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
survivors=0
# The models: loom's, or the random schedules of shuttle.
with() {
    models=$1
    export RUSTFLAGS="--cfg $1 -A warnings"
}

# mutant NAME FILE PERL-SUBSTITUTION MODELS
mutant() {
    case $1 in *"$only"*) ;; *) return 0 ;; esac
    file=slabcore/src/$2
    cp "$copy/$file" "$copy/kept"
    perl -0pi -e "$3" "$copy/$file"
    if cmp -s "$copy/$file" "$copy/kept"; then
        echo "$1: does not apply to $2" >&2
        exit 2
    fi
    if ! (cd "$copy" && cargo test --quiet --locked -p slabctl-slabcore --release --test "$models" \
        --no-run >"$copy/build" 2>&1); then
        cat "$copy/build" >&2
        exit 2
    fi
    # A model may also find no end; then it is stopped, and that is a failure of it.
    if (cd "$copy" && timeout 120 cargo test --quiet --locked -p slabctl-slabcore --release \
        --test "$models" "$4" >"$copy/out" 2>&1); then
        echo "SURVIVED $1 ($4)"
        survivors=$((survivors + 1))
    else
        caught=$(sed -n 's/^    \([a-z_:]*\)$/\1/p' "$copy/out" | sort -u | tr '\n' ' ')
        echo "caught   $1: ${caught:-$4 (aborted)}"
    fi
    cp "$copy/kept" "$copy/$file"
}

with loom
# The slab word.
mutant tag-stands-still slab.rs 's/\.wrapping_add\(TAG\)//' validate
mutant word-change-relaxed slab.rs 's/Ordering::AcqRel, Ordering::Relaxed/Ordering::Relaxed, Ordering::Relaxed/' slab
mutant last-free-without-lock slab.rs 's/full \|\| new\.inuse\(\) == 0/full/' slab
mutant own-list-dropped slab.rs 's/links\.set\(own\.tail, old\.head\(\)\);//' slab
mutant holder-not-respected node.rs 's/if !was_full && !freed\.on_node/if false/' slab
mutant discarded-while-listed node.rs 's/if freed\.on_node \{\s*self\.remove\(&held, table, index\);\s*\}//' slab
mutant listed-by-both node.rs 's/if word\.head\(\) == NONE \{/if false {/' slab
# Remote frees.
mutant no-wake-bit slab.rs 's/old\.with_wake\(true\)/old/' wake
mutant wake-not-rechecked slab.rs 's/if old\.free\(\) >= wake \{\s*old\.emptied\(\)/if false { old/' wake
mutant never-told slab.rs 's/tell = old\.wake\(\) && new\.free\(\) >= wake;/tell = false;/' wake
mutant no-queued-flag wake.rs 's/if desc\.queued\.load\(Relaxed\) == 0 \{\s*desc\.queued\.store/if true { desc.queued.store/' wake
# Slots that end, and adoption.
mutant owner-not-asked-again wake.rs 's/if desc\.owner\.load\(Relaxed\) != owner/if false/' adoption
mutant stays-in-queue wake.rs 's/if desc\.queued\.load\(Relaxed\) == 0 \{\s*return;/if true { return;/' adoption
mutant keeps-owner wake.rs 's/desc\.owner\.store\(0, Relaxed\);//' adoption
# The barn.
mutant barn-put-without-lock barn.rs 's/let _held = self\.lock\.lock\(\);\s*push/push/' barn
mutant sheaf-given-twice barn.rs 's/len\.store\(n, Relaxed\);//' barn
# Validation.
mutant reader-without-fence slab.rs 's/fence\(Ordering::Acquire\);//' validate
mutant taker-without-fence slab.rs 's/(after the word: see `still`\.\s*)fence\(Ordering::Release\);/$1/' validate
mutant new-life-without-fence slab.rs 's/(Ordering::Release\);\s*)fence\(Ordering::Release\);(\s*\}\s*\/\/\/ Empties)/$1$2/' validate
mutant mark-before-the-word node.rs 's/on_node\.store\(1, Release\)/on_node.store(1, Relaxed)/' validate
mutant discards-without-a-word slab.rs 's/self\.reset\(Word::taken\(self\.load\(\)\.objects\(\), true\)\);//' validate
mutant believes-what-moved walk.rs 's/desc\.still\(word\)\.then_some\(seen\)/Some(seen)/' validate
# What only the whole engine shows: its policies' own order of things.
with shuttle
export SLABCORE_SCHEDULES=2000
mutant forgets-the-last-link own.rs 's/links\.set\(chain\.tail, object\);//' ''
mutant gives-up-with-owner policy/owned.rs 's/cx\.row\.queue\.0\.give_up\(&cx\.core\.engine\.pages, slab\);//' ''
mutant lists-frozen-slabs policy/cpu_slab.rs 's/cx\.deactivate\(slab, None\);/cx.put_down(slab, cx.core.desc(slab).load());/' ''
mutant barn-forgets-count policy/sheaves.rs 's/row\.main\.store\(empty, Relaxed\);\s*row\.n\.store\(0, Relaxed\);/row.main.store(empty, Relaxed);/' ''
mutant debug-free-without-lock policy/debug.rs 's/(cx\.add\(Stat::AtomicOps, 3\);\s*let held = )node\.list_lock\.lock\(\);(\s*\/\/ An object)/let other = crate::sync::Lock::new(); $1other.lock();$2/' ''
mutant walks-what-moved walk.rs 's/desc\.still\(word\)\.then_some\(seen\)/Some(seen)/' validation
mutant exits-without-flush slot.rs 's/crate::engine::flush_slot\(slot\);//' ''
[ "$survivors" -eq 0 ]
