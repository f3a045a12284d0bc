# What BPF programs see is what the files say, for caches that did not change
# meanwhile: /proc/slabinfo with the parked objects added, and sysfs.
# boots: plain debug
slabctl doctor --csv | tr -d '\r' >doctor || true
if ! grep -q '^BPF programs,readable' doctor; then
    why=$(sed -n 's/^BPF programs,//p' doctor)
    # A kernel that describes its types has to take them.
    [ -e /sys/kernel/btf/vmlinux ] || skip "no BPF here: $why"
    not_ok "the kernel takes the programs: $why"
    exit 0
fi

# lists: partial and CPU slabs of each directory.
lists() {
    for dir in "$slab"/*; do
        [ ! -h "$dir" ] || continue
        read -r partial _ <"$dir/partial"
        read -r cpu _ <"$dir/cpu_slabs"
        read -r objects _ <"$dir/objects_partial"
        echo "${dir##*/},$objects,$partial,$cpu"
    done | sort
}

cat /proc/slabinfo >before
csv report --bpf -z --columns name,objects,parked,total_objects,slab_size,objs_per_slab,slabs,pages_per_slab >report
cat /proc/slabinfo >after
quiet before after >names
holds "at least 50 caches were quiet" "$(wc -l <names)" -ge 50
is "the programs counted what is parked" "$(awk -F, '$3 == ""' report | wc -l)" 0
awk 'NR == FNR { want[$1] = 1; next } $1 in want { print $1 "," $2 "," $3 "," $4 "," $5 "," $15 "," $6 }' \
    names before | sort >wanted
awk -F, -v OFS=, 'NR == FNR { want[$1] = 1; next }
    $1 in want { print $1, $2 + $3, $4, $5, $6, $7, $8 }' names report | sort >got
close "the figures of all quiet caches" wanted got
is "every cache is there" "$(tail -n +2 report | wc -l)" "$(tail -n +3 after | wc -l)"

lists >before
csv report --bpf -z --columns id,objects_partial,partial,cpu_slabs >report
lists >after
# Kernels of the sheaves have no CPU slabs; their file says 0.
tail -n +2 report | sed 's/,$/,0/' | sort >got
grep -xFf after before >still
grep -vxFf got still | tee moved || true
holds "at least 50 caches have quiet lists" "$(wc -l <still)" -ge 50
holds "lists are those of sysfs, but for a few that moved and came back" \
    "$(wc -l <moved)" -le $(($(wc -l <still) / 20))

# 5000 objects that are in use, and then are not.
in_use() { csv report --bpf -z --columns name,objects "$1" | tail -n +2 | head -n 1 | cut -d, -f2; }
load_slabbug
echo "new counted" >$bug
before=$(in_use counted)
echo "alloc 5000" >$bug
is "objects in use are those that were allocated" $(($(in_use counted) - before)) 5000
echo "free 5000" >$bug
is "and none after they were given back" "$(in_use counted)" "$before"
