# shrink and tune on a cache that nobody needs, and back.
# boots: plain
load_slabbug debug=0
plant tuned "alloc 2000" "free 1990"
cat $slab/tuned/slabs $slab/tuned/partial
csv shrink tuned --yes >shrunk
cat shrunk
read -r slabs _ <$slab/tuned/slabs
is "slabs after it are the kernel's" "$(awk -F, 'NR == 2 { print $3 }' shrunk)" "$slabs"
holds "no empty slab is left ($slabs for 10 objects)" "$slabs" -le 10
read -r objects _ <$slab/tuned/objects
is "no object was lost" "$(csv report --exact --columns name,objects tuned | tail -n 1)" "tuned,$objects"

read -r min <$slab/tuned/min_partial
status 2 slabctl tune tuned min_partial=$((min + 3))
is "nothing is written without a yes" "$(cat $slab/tuned/min_partial)" "$min"
slabctl tune tuned min_partial=$((min + 3)) --save undo --yes
is "min_partial after tune" "$(cat $slab/tuned/min_partial)" $((min + 3))
slabctl tune --undo undo --yes
is "min_partial after --undo" "$(cat $slab/tuned/min_partial)" "$min"

# Since 7.0 there are no CPU partial lists, and the kernel refuses the limit.
read -r cpu <$slab/tuned/cpu_partial
if echo 7 2>/dev/null >$slab/tuned/cpu_partial; then
    echo "$cpu" >$slab/tuned/cpu_partial
    slabctl tune tuned cpu_partial=7 --save undo2 --yes
    is "cpu_partial after tune" "$(cat $slab/tuned/cpu_partial)" 7
    slabctl tune --undo undo2 --yes
else
    code=0
    slabctl tune tuned cpu_partial=7 --yes 2>refused || code=$?
    cat refused
    holds "a refused limit is a failure" $code -ne 0
    has "it says which limit" refused cpu_partial
fi
is "cpu_partial in the end" "$(cat $slab/tuned/cpu_partial)" "$cpu"
