# Who holds objects, from alloc_traces and free_traces.
# boots: debug
load_slabbug
plant sited "alloc 321"
slabctl capture a.tar.gz --traces
csv sites sited >sites
cat sites
is "how many objects one function holds" "$(awk -F, '$2 ~ /^slabbug_alloc_one/ { print $3 }' sites)" 321
is "nobody else holds any" "$(tail -n +2 sites | wc -l)" 1
slabctl sites -q sited --by stack >stack
has "the stack goes on to its caller" stack slabbug_write

echo "alloc 79" >$bug
slabctl capture b.tar.gz --traces
csv sites sited --diff a.tar.gz b.tar.gz >diff
cat diff
is "what accumulated" "$(awk -F, '$2 ~ /^slabbug_alloc_one/ { print $3, $4, $5 }' diff)" "400 321 79"

# kernel FILE WORDS: objects of the kernel's own lines with these words.
kernel() { awk -v words="$2" '/^ *[0-9]+ / && index($0, words) { s += $1 } END { print s + 0 }' "$1"; }

# Slots are used again in an order that is the kernel's own.
echo "free 390" >$bug
echo "alloc 4000" >$bug
csv sites sited --freed >freed
cat freed
cat /sys/kernel/debug/slab/sited/free_traces >free_traces
head -n 4 free_traces
is "slots that were freed before" "$(awk -F, '$2 ~ /^slabbug_free_one/ { s += $3 } END { print s + 0 }' freed)" \
    "$(kernel free_traces slabbug_free_one)"
is "slots that never were, and no age of what never was" "$(awk -F, '$2 == "" { print $3 "," $6 }' freed)" \
    "$(kernel free_traces '<not-available>'),"

# Of a cache of the kernel's own; one copy of the file is read by both.
cat /sys/kernel/debug/slab/kmalloc-64/alloc_traces >traces 2>/dev/null || skip "no sites of kmalloc-64"
holds "sites of kmalloc-64" "$(kernel traces age=)" -gt 100
is "they sum to the kernel's lines" \
    "$(csv sites --from traces | awk -F, 'NR > 1 { s += $3 } END { print s }')" "$(kernel traces age=)"
