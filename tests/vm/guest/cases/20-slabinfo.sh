# Counts are those of /proc/slabinfo, for caches that did not change meanwhile.
# boots: plain debug
cat /proc/slabinfo >before
csv report -z --exact --columns name,objects,total_objects,slab_size,objs_per_slab,slabs,pages_per_slab >report
cat /proc/slabinfo >after
quiet before after >names
holds "at least 50 caches were quiet" "$(wc -l <names)" -ge 50

awk 'NR == FNR { want[$1] = 1; next } $1 in want { print $1 "," $2 "," $3 "," $4 "," $5 "," $15 "," $6 }' \
    names before | sort >wanted
awk -F, 'NR == FNR { want[$1] = 1; next } $1 in want' names report | sort >got
close "the figures of all quiet caches" wanted got
is "every cache is there" "$(tail -n +2 report | wc -l)" "$(tail -n +3 after | wc -l)"
