# A capture gives the figures of the machine it was made on. The host reads it
# too, and compares what it reports with the files left here.
# boots: plain debug
cat /proc/slabinfo >before
slabctl capture /out/capture.tar.gz
csv report -z --exact --columns name,objects,total_objects,slabs >live
cat /proc/slabinfo >after
# A capture holds two files of each cache open while it reads: their objects
# are in these.
quiet before after | grep -vxE 'seq_file|filp|lsm_file_cache|kmalloc-(cg-)?(192|256|4k)' >names
csv report -z --columns name,objects,total_objects,slabs --from /out/capture.tar.gz >saved
for side in live saved; do
    awk -F, 'NR == FNR { want[$1] = 1; next } $1 in want' names $side | sort >quiet.$side
done
holds "at least 50 caches were quiet" "$(wc -l <names)" -ge 50
close "live and captured figures of quiet caches" quiet.live quiet.saved

slabctl report --from /out/capture.tar.gz >/out/capture.table 2>/out/capture.notes
slabctl report --from /out/capture.tar.gz -z --json >/out/capture.json 2>/dev/null
slabctl report --from /out/capture.tar.gz --totals --csv >/out/capture.totals 2>/dev/null
has "the table has caches" /out/capture.table kmalloc-64
