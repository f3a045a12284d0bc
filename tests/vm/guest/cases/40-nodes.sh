# Figures of each NUMA node.
# boots: plain debug
[ -e /sys/devices/system/node/node1 ] || skip "the machine has one node"
load_slabbug
plant noded "alloc 1000 0" "alloc 500 1"
slabctl show -q noded --section numa >shown
cat shown
cat $slab/noded/objects $slab/noded/slabs $slab/noded/partial

# of NODE FILE: one node's figure in an attribute, 0 when it is left out there.
of() { tr ' ' '\n' <"$slab/noded/$2" | awk -F= -v n="N$1" '$1 == n { v = $2 } END { print v + 0 }'; }
for node in 0 1; do
    is "node $node: slabs, partial, objects, room" \
        "$(awk -v n=$node '$1 == n { print $2, $3, $5, $6 }' shown)" \
        "$(of $node slabs) $(of $node partial) $(of $node objects) $(of $node total_objects)"
done
is "objects where they were put" "$(awk '$1 == 0 || $1 == 1 { print $5 }' shown | tr '\n' ' ')" "1000 500 "

csv report --numa noded >report
is "report --numa" "$(tail -n 1 report | cut -d, -f1-4)" \
    "noded,$(($(of 0 slabs) + $(of 1 slabs))),$(of 0 slabs),$(of 0 partial)"
