# Slow paths that programs count at the entry of functions are what the module
# did. In an emulator this needs one thread (ACCELERATOR=tcg,thread=single).
# boots: plain
slabctl doctor --csv | tr -d '\r' >doctor || true
grep -q '^BPF programs at functions,readable' doctor || skip "no fentry here: $(sed -n 's/^BPF programs[^,]*,//p' doctor | tail -n 1)"
[ "$(cat /job/accelerator)" != tcg,thread=multi ] || skip "an emulator with several threads may die of it: ACCELERATOR=tcg,thread=single"

cat >load <<'LOAD'
i=0
while [ $i -lt 500 ]; do
    : </job/boot
    i=$((i + 1))
done
LOAD
counted filp --paths=fentry
! grep -q 'counts them itself' said || skip "a kernel with CONFIG_SLUB_STATS keeps its own counters"
has "they are counted, not inferred" said "at the entry of the kernel's functions"
if grep 'this kernel has not got' said; then not_ok "every function is there"; else ok "every function is there"; fi
allocs=$(figure allocs)
holds "500 opens are 500 allocations or a few more ($allocs)" "$allocs" -ge 500 -a "$allocs" -lt 700
holds "few of them are slow" "$(figure allocs_slow)" -lt 250

load_slabbug
echo "new counted" >$bug
# Its first slab came with the cache, or will come with these.
before=$(sed 's/ .*//' $slab/counted/slabs)
echo 'echo "alloc 5000" >/sys/kernel/debug/slabbug' >load
counted counted --paths=fentry
is "allocations" "$(figure allocs)" 5000
is "each slab that came was counted" "$(figure slabs_in)" $(($(sed 's/ .*//' $slab/counted/slabs) - before))
is "none went" "$(figure slabs_out)" 0
# The module's caches have debug options, and those have no fast path.
is "each allocation was slow" "$(figure allocs_slow)" 5000

before=$(sed 's/ .*//' $slab/counted/slabs)
echo 'echo "free 4900" >/sys/kernel/debug/slabbug' >load
counted counted --paths=fentry
is "frees" "$(figure frees)" 4900
case $(uname -r) in
6.*) is "each free was slow" "$(figure frees_slow)" 4900 ;;
*) is "slow frees are not known where sheaves are flushed the same way" "$(figure frees_slow)" "" ;;
esac
out=$(figure slabs_out)
after=$(sed 's/ .*//' $slab/counted/slabs)
is "each slab that went was counted ($out)" "$out" $((before - after))
