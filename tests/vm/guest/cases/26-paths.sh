# What BPF programs count at tracepoints is what a load of known size did, and
# the objects that are outstanding are those that it keeps.
# boots: plain debug
slabctl doctor --csv | tr -d '\r' >doctor || true
grep -q '^BPF programs,readable' doctor || skip "no BPF here: $(sed -n 's/^BPF programs,//p' doctor)"

cat >load <<'LOAD'
i=0
while [ $i -lt 500 ]; do
    : </job/boot
    i=$((i + 1))
done
LOAD
counted filp --paths
allocs=$(figure allocs)
if grep -q 'counts them itself' said; then
    ok "a kernel with CONFIG_SLUB_STATS keeps its own counters ($allocs)"
else
    holds "500 opens are 500 allocations or a few more ($allocs)" "$allocs" -ge 500 -a "$allocs" -lt 700
    holds "most find an object near their CPU" "$(figure allocs_fast)" -ge $((allocs / 2)) -o "$(cat /job/boot)" = debug
    has "what was not seen is told" said "missed in interrupts"
fi

# follow CACHE ARGUMENT..: begins to follow; the load comes after it.
follow() {
    slabctl sites "$@" --live --for 15s --csv >followed 2>following &
    follower=$!
    while ! grep -q following following && kill -0 $follower 2>/dev/null; do sleep 1; done
    # An emulated CPU goes on with code that was changed for a while.
    sleep 2
}
# found: waits for the end.
found() {
    wait $follower || cat following
    grep live following
    tr -d '\r' <followed >sites
    cat sites
}

# 100 files stay open, each by a process.
follow filp --by stack
i=0
while [ $i -lt 100 ]; do
    sleep 30 </job/boot &
    i=$((i + 1))
done
found
open=$(grep do_sys_open sites | awk -F, '{ s += $3 } END { print s + 0 }')
# What interrupted the same program is told, and not in the list.
missed=$(sed -n 's/.* live sites: \([0-9]*\) allocations and .* missed in interrupts.*/\1/p' following)
holds "100 open files are outstanding, by their stack ($open, ${missed:-0} missed)" $((open + ${missed:-0})) -ge 100 -a "$open" -lt 200

load_slabbug
# The cache is the module's own: nobody else allocates from it.
echo "new counted" >$bug
cat >load <<'LOAD'
echo "alloc 5000" >/sys/kernel/debug/slabbug
echo "free 3000" >/sys/kernel/debug/slabbug
LOAD
counted counted --paths
is "allocations" "$(figure allocs)" 5000
is "frees" "$(figure frees)" 3000
case $(uname -r) in
6.[0-9].* | 6.1[01].*) is "slabs that come are not told before 6.12" "$(figure slabs_in)" "" ;;
*) holds "slabs came for them" "$(figure slabs_in)" -gt 10 ;;
esac

# 321 objects stay, by one function.
follow counted
echo "alloc 400" >$bug
echo "free 79" >$bug
found
is "how many are outstanding, by function" "$(awk -F, '$2 ~ /^slabbug_alloc_one/ { s += $3 } END { print s }' sites)" 321
