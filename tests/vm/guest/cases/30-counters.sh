# Event counters of known loads. Needs CONFIG_SLUB_STATS.
# boots: plain
[ -e $slab/kmalloc-64/alloc_fastpath ] || skip "the kernel counts no events (CONFIG_SLUB_STATS)"

# events CACHE: allocations and frees so far.
events() { csv report -z -A --columns name,allocs,frees "$1" 2>/dev/null | tail -n 1; }
load_slabbug debug=0
plant counted "alloc 1000" "free 400"
csv report -A counted >report
cat report
is "allocations and frees of a new cache" "$(awk -F, 'NR == 2 { print $3 "," $4 }' report)" 1000,400

sum() { # sum FILE..: the totals at the beginning of counters
    for file in "$@"; do read -r value _ <"$slab/counted/$file" && echo "$value"; done | awk '{ s += $1 } END { print s }'
}
is "they are the kernel's" "$(awk -F, 'NR == 2 { print $3 "," $4 }' report)" \
    "$(sum alloc_fastpath alloc_slowpath),$(sum free_fastpath free_slowpath)"
for file in alloc_fastpath alloc_slowpath free_fastpath free_slowpath alloc_slab; do
    read -r value _ <$slab/counted/$file
    is "$file" "$(csv report --columns name,$file counted | tail -n 1)" "counted,$value"
done

# Files that are opened are allocated from filp. A report opens many of its
# own, as many each time.
opened() { csv report -A filp | awk -F, 'NR == 2 { print $3 }'; }
first=$(opened)
second=$(opened)
i=0
while [ $i -lt 500 ]; do
    : </job/boot
    i=$((i + 1))
done
third=$(opened)
more=$((third - second - (second - first)))
holds "500 opens are 500 allocations more, or nearly ($first $second $third)" $more -ge 450 -a $more -le 550

# Between two samples of one run.
(sleep 1 && echo "alloc 7000" >$bug) &
csv diff --interval 3s --filter 'name~^counted$' >diff
wait
cat diff
grown=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "objects_delta") c = i } NR == 2 { print $c }' diff)
# Free objects near the CPUs count as in use, before and after.
holds "growth in an interval ($grown)" "$grown" -gt 6500 -a "$grown" -lt 7500
